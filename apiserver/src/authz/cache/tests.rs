//! Tests of the memory for access answers.

use http::Method;
use parking_lot::Mutex;

use super::*;
use crate::authn;
use crate::authz::rbac::Rbac;

/// Allows by rule `user verb resource namespace name`, `*` for any, and notes what was asked.
#[derive(Default)]
struct Rules {
    rules: Vec<[&'static str; 5]>,
    asked: Mutex<Vec<String>>,
    broken: bool,
}

#[async_trait]
impl Authorizer for Rules {
    async fn authorize(&self, user: &UserInfo, a: &Attributes) -> Result<Decision, Status> {
        let asked = [&user.name, &a.verb, &a.resource, &a.namespace, &a.name].map(String::as_str);
        self.asked.lock().push(asked.join(" "));
        tokio::task::yield_now().await;
        if self.broken {
            return Err(Status::internal("no connection"));
        }
        let fits =
            |rule: &&[&str; 5]| rule.iter().zip(asked).all(|(rule, asked)| *rule == "*" || *rule == asked);
        Ok(if self.rules.iter().any(|rule| fits(&rule)) {
            Decision::Allow
        } else {
            Decision::Deny { reason: format!("no rule for {}", a.name) }
        })
    }
}

struct World {
    rules: Arc<Rules>,
    authorizer: CachedAuthorizer,
    metrics: Arc<Metrics>,
}

fn world(rules: Rules) -> World {
    let (rules, metrics) = (Arc::new(rules), Arc::new(Metrics::new()));
    let scopes = Scopes::new(Arc::new(Rbac::new()));
    let authorizer = CachedAuthorizer::new(Arc::clone(&rules) as _, scopes, Arc::clone(&metrics));
    World { rules, authorizer, metrics }
}

impl World {
    async fn get(&self, identity: &Identity, path: &str) -> Result<Decision, Status> {
        let info = RequestInfo::parse(&Method::GET, path, false, None).unwrap();
        self.authorizer.authorize_request(identity, &info).await
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.rules.asked.lock())
    }
}

fn user(name: &str) -> Identity {
    Identity::new(UserInfo { name: name.to_owned(), ..UserInfo::default() }, authn::Method::FrontProxy)
}

fn route(name: &str) -> String {
    format!("/apis/route.openshift.io/v1/namespaces/ns/routes/{name}")
}

#[tokio::test]
async fn many_names_cost_one_review() {
    let world = world(Rules { rules: vec![["jane", "get", "routes", "ns", ""]], ..Rules::default() });
    let jane = user("jane");
    for n in 0..100 {
        assert_eq!(world.get(&jane, &route(&n.to_string())).await, Ok(Decision::Allow));
    }
    assert_eq!(world.asked(), ["jane get routes ns "]);
    assert_eq!((world.metrics.access_reviews.get(), world.metrics.access_cache_hits.get()), (1, 99));
    assert_eq!(
        world.get(&user("joe"), &route("a")).await,
        Ok(Decision::Deny { reason: "no rule for a".to_owned() })
    );
    assert_eq!(world.asked(), ["joe get routes ns ", "joe get routes ns a"]);
}

#[tokio::test]
async fn a_single_name_may_be_allowed_and_denials_are_kept_too() {
    let world = world(Rules { rules: vec![["jane", "get", "routes", "ns", "a"]], ..Rules::default() });
    let jane = user("jane");
    for _ in 0..3 {
        assert_eq!(world.get(&jane, &route("a")).await, Ok(Decision::Allow));
        assert!(matches!(world.get(&jane, &route("b")).await, Ok(Decision::Deny { .. })));
    }
    assert_eq!(world.asked(), ["jane get routes ns ", "jane get routes ns a", "jane get routes ns b"]);
}

#[tokio::test]
async fn projects_and_scoped_users_are_asked_by_name() {
    let world = world(Rules { rules: vec![["*", "*", "*", "*", "*"]], ..Rules::default() });
    world.get(&user("jane"), "/apis/project.openshift.io/v1/projects/p").await.unwrap();
    assert_eq!(world.asked(), ["jane get projects p p"]);
    let mut scoped = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
    scoped.extra.insert("scopes.authorization.openshift.io".to_owned(), vec!["user:full".to_owned()]);
    world.get(&Identity::new(scoped, authn::Method::FrontProxy), &route("a")).await.unwrap();
    assert_eq!(world.asked(), ["jane get routes ns a"]);
}

#[tokio::test]
async fn users_of_one_name_but_other_groups_do_not_share_answers() {
    let world = world(Rules { rules: vec![["*", "*", "*", "*", "*"]], ..Rules::default() });
    for group in ["a", "b"] {
        let info = UserInfo { name: "jane".into(), groups: vec![group.into()], ..UserInfo::default() };
        world.get(&Identity::new(info, authn::Method::FrontProxy), &route("a")).await.unwrap();
    }
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test]
async fn identical_questions_at_a_time_are_asked_once_and_errors_are_not_kept() {
    let world = world(Rules { broken: true, ..Rules::default() });
    let jane = user("jane");
    let paths: Vec<String> = (0..20).map(|_| "/apis".to_owned()).collect();
    let answers = futures::future::join_all(paths.iter().map(|path| world.get(&jane, path))).await;
    assert!(answers.iter().all(Result::is_err));
    assert_eq!(world.asked().len(), 1);
    assert!(world.get(&jane, "/apis").await.is_err());
    assert_eq!(world.asked().len(), 1);
}

#[tokio::test]
async fn answers_are_kept_for_their_time_only_and_afresh_means_afresh() {
    let mut world = world(Rules { rules: vec![["*", "*", "*", "*", "*"]], ..Rules::default() });
    let jane = user("jane");
    let attributes = Attributes { verb: "get".into(), path: "/x".into(), ..Attributes::default() };
    world.get(&jane, "/x").await.unwrap();
    world.authorizer.authorize_afresh(Arc::clone(&jane.user), attributes.clone()).await.unwrap();
    assert_eq!(world.asked().len(), 2);
    assert_eq!(world.authorizer.authorize(&jane.user, &attributes).await, Ok(Decision::Allow));
    assert_eq!(world.asked().len(), 0, "the fresh answer is kept");
    world.authorizer = world.authorizer.with_ttl(Duration::ZERO);
    world.get(&jane, "/y").await.unwrap();
    world.get(&jane, "/y").await.unwrap();
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test]
async fn masters_and_probes_need_no_review() {
    let world = world(Rules::default());
    let mut master = UserInfo::anonymous();
    master.groups.push(MASTERS.to_owned());
    assert_eq!(world.get(&Identity::new(master, authn::Method::FrontProxy), "/x").await, Ok(Decision::Allow));
    let nobody = Identity::new(UserInfo::anonymous(), authn::Method::Anonymous);
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ready"] {
        assert_eq!(world.get(&nobody, path).await, Ok(Decision::Allow));
    }
    assert!(world.asked().is_empty());
    assert!(matches!(world.get(&nobody, "/readyz/store").await, Ok(Decision::Deny { .. })));
}

#[test]
fn answers_are_bounded() {
    let answers = Answers::default();
    let who = Arc::new(UserInfo::default());
    for n in 0..=MAX_KEPT {
        let attributes = Attributes { path: n.to_string(), ..Attributes::default() };
        let question = Question { user: Arc::clone(&who), user_hash: 0, attributes };
        answers.keep(question, Decision::Allow, KEPT_FOR);
    }
    assert!(answers.kept.len() <= MAX_KEPT);
}

#[tokio::test]
async fn long_questions_take_no_memory() {
    let world = world(Rules { rules: vec![["*"; 5]], ..Rules::default() });
    let anybody = user("system:anonymous");
    let long = format!("/{}", "x".repeat(10_000));
    for _ in 0..2 {
        assert_eq!(world.get(&anybody, &long).await.unwrap(), Decision::Allow);
        assert_eq!(world.get(&anybody, "/short").await.unwrap(), Decision::Allow);
    }
    assert_eq!(world.asked().len(), 3, "the long one twice");
    assert_eq!(world.authorizer.answers.kept.len(), 1);
}

#[tokio::test]
async fn what_scopes_prevent_is_asked_of_nobody_and_masters_are_held_to_it() {
    let world = world(Rules { rules: vec![["*"; 5]], ..Rules::default() });
    let mut jane =
        UserInfo { name: "jane".to_owned(), groups: vec![MASTERS.to_owned()], ..UserInfo::default() };
    jane.extra.insert("scopes.authorization.openshift.io".to_owned(), vec!["user:info".to_owned()]);
    let reason = "scopes [user:info] prevent this action".to_owned();
    let denied = Ok(Decision::Deny { reason });
    let identity = Identity::new(jane.clone(), authn::Method::FrontProxy);
    assert_eq!(world.get(&identity, &route("a")).await, denied);
    let attributes = Attributes { verb: "list".into(), resource: "routes".into(), ..Attributes::default() };
    assert_eq!(world.authorizer.authorize(&jane, &attributes).await, denied);
    assert_eq!(world.authorizer.authorize_afresh(Arc::new(jane), attributes).await, denied);
    assert!(world.asked().is_empty());
    assert_eq!(world.get(&identity, "/apis").await, Ok(Decision::Allow));
}
