//! The descriptions of the resources (`oauth-apiserver/pkg/oauth/printers`).

use picoshift_machinery::{GroupVersionKind, Object};
use serde_json::Value;

use super::GROUP;
use crate::resource::column::{Column, NAME, name, text};
use crate::resource::{Resource, Verb};

const CREATED: Column = text(
    "Created",
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
);
const EXPIRES: Column =
    text("Expires", "expiresIn is the seconds from CreationTime before this token expires.");
const REDIRECT_URI: Column =
    text("Redirect URI", "redirectURI is the redirection associated with the token.");
const SCOPES: Column = text("Scopes", "scopes is an array of the requested scopes.");
const USER_OF_TOKEN: &str = "userName is the user name associated with this token";
const CLIENT_OF_TOKEN: &str = "clientName references the client that created this token.";

/// `oauthclients`.
pub static CLIENTS: Resource = Resource {
    gvk: kind("OAuthClient"),
    plural: "oauthclients",
    singular: "oauthclient",
    columns: &[
        NAME,
        text("Secret", "secret is the unique secret associated with a client"),
        Column {
            r#type: "bool",
            ..text(
                "WWW-Challenge",
                "respondWithChallenges indicates whether the client wants authentication needed responses made in the form of challenges instead of redirects",
            )
        },
        text(
            "Token-Max-Age",
            "accessTokenMaxAgeSeconds overrides the default access token max age for tokens granted to this client. 0 means no expiration.",
        ),
        text("Redirect URIs", "redirectURIs is the valid redirection URIs associated with a client"),
    ],
    schema: "com.github.openshift.api.oauth.v1.OAuthClient",
    ..STORED
};

/// `oauthaccesstokens`.
pub static ACCESS_TOKENS: Resource = Resource {
    gvk: kind("OAuthAccessToken"),
    plural: "oauthaccesstokens",
    singular: "oauthaccesstoken",
    columns: &[
        NAME,
        name("User Name", USER_OF_TOKEN),
        name("Client Name", CLIENT_OF_TOKEN),
        CREATED,
        EXPIRES,
        REDIRECT_URI,
        SCOPES,
    ],
    field_labels: &["clientName", "userName", "userUID", "authorizeToken"],
    schema: "com.github.openshift.api.oauth.v1.OAuthAccessToken",
    ..STORED
};

/// `oauthauthorizetokens`. Its column of clients is described as that of users, as on the real server.
pub static AUTHORIZE_TOKENS: Resource = Resource {
    gvk: kind("OAuthAuthorizeToken"),
    plural: "oauthauthorizetokens",
    singular: "oauthauthorizetoken",
    columns: &[
        NAME,
        name("User Name", USER_OF_TOKEN),
        name("Client Name", USER_OF_TOKEN),
        CREATED,
        EXPIRES,
        REDIRECT_URI,
        SCOPES,
    ],
    field_labels: &["clientName", "userName", "userUID"],
    schema: "com.github.openshift.api.oauth.v1.OAuthAuthorizeToken",
    ..STORED
};

/// `oauthclientauthorizations`.
pub static CLIENT_AUTHORIZATIONS: Resource = Resource {
    gvk: kind("OAuthClientAuthorization"),
    plural: "oauthclientauthorizations",
    singular: "oauthclientauthorization",
    columns: &[
        NAME,
        name("User Name", "userName is the user name that authorized this client"),
        name("Client Name", "clientName references the client that created this authorization"),
        text("Scopes", "scopes is an array of the granted scopes."),
    ],
    field_labels: &["clientName", "userName", "userUID"],
    schema: "com.github.openshift.api.oauth.v1.OAuthClientAuthorization",
    ..STORED
};

/// `useroauthaccesstokens`.
pub static USER_TOKENS: Resource = Resource {
    gvk: kind("UserOAuthAccessToken"),
    plural: "useroauthaccesstokens",
    singular: "useroauthaccesstoken",
    verbs: &[Verb::Delete, Verb::Get, Verb::List, Verb::Watch],
    columns: &[NAME, name("Client Name", CLIENT_OF_TOKEN), CREATED, EXPIRES, REDIRECT_URI, SCOPES],
    field_labels: &["clientName"],
    schema: "com.github.openshift.api.oauth.v1.UserOAuthAccessToken",
    ..STORED
};

/// `tokenreviews`, whose objects are Kubernetes' own.
pub static TOKEN_REVIEWS: Resource = Resource {
    gvk: kind("TokenReview"),
    plural: "tokenreviews",
    singular: "tokenreview",
    verbs: &[Verb::Create],
    schema: "io.k8s.api.authentication.v1.TokenReview",
    ..STORED
};

/// What the resources have in common.
const STORED: Resource = Resource {
    gvk: kind(""),
    plural: "",
    singular: "",
    namespaced: false,
    verbs: Verb::ALL,
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[],
    field_labels: &[],
    garbage_collected: false,
    bare: true,
    schema: "",
};

const fn kind(kind: &'static str) -> GroupVersionKind {
    GroupVersionKind { group: GROUP, version: "v1", kind }
}

/// The texts of a list at the top of an object.
pub(super) fn strings<'a>(object: &'a Object, field: &str) -> Vec<&'a str> {
    object.0.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The number at the top of an object; 0 where there is none.
pub(super) fn number(object: &Object, field: &str) -> i64 {
    object.0.get(field).and_then(Value::as_i64).unwrap_or_default()
}
