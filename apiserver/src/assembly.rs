//! Puts the server together: the store, admission, the groups and what answers for each path.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use http::{HeaderMap, Request, Response, header};
use hyper::body::Incoming;
use kube::Client;
use picoshift_machinery::body::Body;
use picoshift_machinery::readiness::{Checks, Shown};
use tokio::task::JoinSet;

use crate::admission::{Admission, KindResolver, NamespaceLifecycle, Namespaces, OwnerReferences};
use crate::authn::memberships::Memberships;
use crate::authn::token_review::TokenReview;
use crate::authz::Authorizer;
use crate::authz::rbac::Rbac;
use crate::bootstrap_secret::KubeBootstrapSecret;
use crate::discovery::Discovery;
use crate::groups::{authorization, image, oauth, project, route, security, user};
use crate::oci;
use crate::openapi::OpenApi;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rest::fields::FieldManagers;
use crate::rest::query::{self, Query};
use crate::rest::{Handler, RequestContext, Storage};
use crate::schema::{self, Schemas};
use crate::secrets::Secrets;
use crate::server::{Endpoint, Endpoints, respond};
use crate::service_accounts::KubeServiceAccounts;
use crate::store::Engine;
use crate::store::embedded::{Embedded, Options};

/// What the groups are made from.
pub struct Ingredients<'a> {
    /// Client of kube-apiserver under the server's own identity.
    pub client: Client,
    /// Who is in which group; filled from the store.
    pub memberships: Arc<Memberships>,
    /// Who may what.
    pub authorizer: Arc<dyn Authorizer>,
    /// What RBAC says; filled here.
    pub rbac: Arc<Rbac>,
    /// File of the embedded store.
    pub data_file: &'a Path,
    /// Domain of hosts that are generated.
    pub ingress_domain: &'a str,
    /// The cluster's image registry, if it has one.
    pub hostnames: image::Hostnames,
    /// The client that images are imported with.
    pub registries: Arc<oci::Client>,
    /// Tags of one repository that an import takes at once; `None` for all.
    pub max_imported_tags: Option<usize>,
    /// How OAuth tokens are reviewed.
    pub oauth: oauth::Config,
    /// Where the groups register what must be ready.
    pub checks: &'a Checks,
}

/// The server's resources, running.
pub struct Assembly {
    /// What answers for each path.
    pub endpoints: Endpoints,
    /// Whose an OAuth token is.
    pub tokens: Arc<dyn TokenReview>,
    /// The store; shut down last.
    pub engine: Arc<Embedded>,
    /// Watches on kube-apiserver and what takes away tokens that end; they end when this is dropped.
    pub feeds: Vec<JoinSet<()>>,
}

/// Opens the store and starts every group.
///
/// # Errors
/// When the store cannot be opened or read; nothing is served then.
pub async fn assemble(ingredients: Ingredients<'_>) -> anyhow::Result<Assembly> {
    let Ingredients {
        client,
        memberships,
        authorizer,
        rbac,
        data_file,
        ingress_domain,
        hostnames,
        registries,
        max_imported_tags,
        oauth: oauth_config,
        checks,
    } = ingredients;
    let permissions = Arc::clone(&authorizer);
    let engine = open_store(data_file).await?;
    let store = Arc::clone(&engine);
    // A restart is the remedy, so all three probes show it.
    checks.add("storage", Shown::Everywhere, move || match store.failure() {
        None => Ok(()),
        Some(why) => Err(why.to_string()),
    });
    let admission = admission(&client, &authorizer, checks);

    let secrets = Secrets::new(client.clone());
    let strategy =
        route::RouteStrategy::new(Arc::clone(&authorizer), Arc::new(secrets.clone()), ingress_domain);
    let store = Arc::clone(&engine) as Arc<dyn Engine>;
    let routes = Registry::start(Arc::clone(&store), Arc::new(strategy), Arc::clone(&admission))
        .await
        .context("cannot load routes")?;

    // Before the groups are loaded, which it is told of.
    let projects = project::start(
        client.clone(),
        Arc::clone(&authorizer),
        &memberships,
        &rbac,
        project::Config::default(),
    );
    let readiness = projects.readiness;
    checks.add("project-visibility-synced", Shown::OnlyReady, move || {
        readiness.check().map_err(|status| status.message)
    });

    let users =
        user::start(&store, &admission, Arc::clone(&memberships)).await.context("cannot load users")?;
    let reviews_and_roles = authorization::start(&client, &authorizer, &rbac);
    let found = Arc::clone(&routes);
    let oauth = oauth::start(oauth::Ingredients {
        engine: Arc::clone(&store),
        admission: Arc::clone(&admission),
        accounts: Arc::new(KubeServiceAccounts::new(client.clone())),
        find_route: Box::new(move |namespace, name| found.find(namespace, name)?.object().ok()),
        users: users.users,
        memberships,
        bootstrap: Arc::new(KubeBootstrapSecret::new(client.clone())),
        config: oauth_config,
    })
    .await
    .context("cannot load OAuth clients and tokens")?;
    let security = security::start(client.clone(), &store, &admission)
        .await
        .context("cannot load security context constraints")?;
    let images = image::start(image::Ingredients {
        client,
        engine: store,
        authorizer,
        admission,
        hostnames,
        registries,
        max_tags: max_imported_tags,
    })
    .await
    .context("cannot load image streams")?;

    let mut storages: Vec<Arc<dyn Storage>> = vec![projects.projects, projects.project_requests, routes];
    storages.extend(users.storages);
    storages.extend(oauth.storages);
    storages.extend(images.storages);
    storages.extend(reviews_and_roles);
    storages.extend(security);
    let feeds = vec![projects.feed, oauth.tasks];
    Ok(Assembly { endpoints: endpoints(storages, &permissions)?, tokens: oauth.tokens, engine, feeds })
}

/// What all writes are asked about.
fn admission(client: &Client, authorizer: &Arc<dyn Authorizer>, checks: &Checks) -> Arc<Admission> {
    let namespaces = Namespaces::start(client.clone());
    let synced = Arc::clone(&namespaces);
    checks.add("namespace-lifecycle-synced", Shown::OnlyReady, move || {
        if synced.is_synced() { Ok(()) } else { Err("namespaces not read yet".to_owned()) }
    });
    Arc::new(Admission::new(vec![
        Box::new(NamespaceLifecycle::new(namespaces)),
        Box::new(OwnerReferences::new(Arc::clone(authorizer), KindResolver::new(client.clone()))),
    ]))
}

/// `/apis` and below, where no resource is named.
struct DiscoveryEndpoint(Discovery);

#[async_trait]
impl Endpoint for DiscoveryEndpoint {
    async fn call(&self, _cx: Arc<RequestContext>, request: Request<Incoming>) -> Response<Body> {
        let pretty = query::pretty(&Query::parse(request.uri().query()), user_agent(request.headers()));
        let found = self.0.respond(request.uri().path(), request.headers(), pretty);
        found.unwrap_or_else(respond::not_found)
    }
}

/// `/openapi/v2`, `/openapi/v3` and below.
struct OpenApiEndpoint(OpenApi);

#[async_trait]
impl Endpoint for OpenApiEndpoint {
    async fn call(&self, _cx: Arc<RequestContext>, request: Request<Incoming>) -> Response<Body> {
        let uri = request.uri();
        let found = self.0.respond(uri.path(), uri.query(), request.headers());
        found.unwrap_or_else(respond::not_found)
    }
}

fn user_agent(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok())
}

async fn open_store(path: &Path) -> anyhow::Result<Arc<Embedded>> {
    let owned = path.to_owned();
    // Opening checks the whole file.
    let engine = tokio::task::spawn_blocking(move || Embedded::open(&owned, Options::default()))
        .await?
        .with_context(|| format!("cannot open the store {}", path.display()))?;
    Ok(engine)
}

fn endpoints(storages: Vec<Arc<dyn Storage>>, authorizer: &Arc<dyn Authorizer>) -> anyhow::Result<Endpoints> {
    let schemas = Arc::new(Schemas::load()?);
    let types = Arc::new(schema::merge_types()?);
    let resources: Vec<&'static Resource> = storages.iter().map(|storage| storage.resource()).collect();
    let discovery = Arc::new(DiscoveryEndpoint(Discovery::new(&resources, &schemas)?));
    let openapi = Arc::new(OpenApiEndpoint(OpenApi::new(resources)));
    let mut endpoints = Endpoints::new()
        .path("/apis", Arc::clone(&discovery) as Arc<dyn Endpoint>)
        .prefix("/apis/", discovery)
        .path("/openapi/v2", Arc::clone(&openapi) as Arc<dyn Endpoint>)
        .path("/openapi/v3", Arc::clone(&openapi) as Arc<dyn Endpoint>)
        .prefix("/openapi/v3/", openapi);
    for storage in storages {
        let resource = storage.resource();
        let fields = FieldManagers::new(&types, &schemas, resource)?;
        let handler = Handler::new(storage, Arc::clone(&schemas), fields, Arc::clone(authorizer));
        endpoints = endpoints.resource(resource, Arc::new(handler));
    }
    Ok(endpoints)
}
