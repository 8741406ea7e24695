package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	oauthclient "github.com/openshift/client-go/oauth/clientset/versioned"
	userclient "github.com/openshift/client-go/user/clientset/versioned"
	"golang.org/x/net/html"
	"golang.org/x/oauth2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// browser keeps cookies and trusts what the cluster's clients trust.
func browser(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		t.Fatal("the kubeconfig has no certificate authority")
	}
	jar, err := cookiejar.New(nil)
	must(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// form is the first one of a page: where it goes, and what it holds.
func form(t *testing.T, page *http.Response) (*url.URL, url.Values) {
	t.Helper()
	defer page.Body.Close()
	document, err := html.Parse(io.LimitReader(page.Body, 1<<20))
	must(t, err)
	var action string
	found, values := false, url.Values{}
	for node := range document.Descendants() {
		attribute := func(name string) string {
			for _, own := range node.Attr {
				if own.Key == name {
					return own.Val
				}
			}
			return ""
		}
		switch {
		case node.Type != html.ElementNode:
		case node.Data == "form" && !found:
			found, action = true, attribute("action")
		case node.Data == "input" && attribute("name") != "":
			values.Add(attribute("name"), attribute("value"))
		}
	}
	if !found {
		t.Fatalf("%s answered %s without a form", page.Request.URL, page.Status)
	}
	target, err := page.Request.URL.Parse(action)
	must(t, err)
	return target, values
}

// TestLoginByTheOAuthLibrary takes the whole way that an application takes with golang.org/x/oauth2: the person logs in and
// allows it, the code becomes a token, with the client's secret in the header or in the form, and with PKCE.
func TestLoginByTheOAuthLibrary(t *testing.T) {
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		t.Run(fmt.Sprint(style), func(t *testing.T) { logInByTheLibrary(t, style) })
	}
}

func logInByTheLibrary(t *testing.T, style oauth2.AuthStyle) {
	config := administrator(t)
	client := browser(t, config)
	var metadata struct {
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
	}
	answer, err := client.Get(config.Host + "/.well-known/oauth-authorization-server")
	must(t, err)
	must(t, json.NewDecoder(answer.Body).Decode(&metadata))
	must(t, answer.Body.Close())

	codes := make(chan url.Values, 1)
	application := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		codes <- request.URL.Query()
	}))
	defer application.Close()
	objects, err := oauthclient.NewForConfig(config)
	must(t, err)
	registered := &oauthv1.OAuthClient{
		ObjectMeta: metav1.ObjectMeta{Name: unique("application")},
		// OpenShift takes what is in the header as it is, while the library escapes it: no signs, then.
		Secret:       "a-secret.of_an-application",
		RedirectURIs: []string{application.URL},
		GrantMethod:  oauthv1.GrantHandlerPrompt,
	}
	_, err = objects.OauthV1().OAuthClients().Create(t.Context(), registered, metav1.CreateOptions{})
	must(t, err)

	flow := oauth2.Config{
		ClientID:     registered.Name,
		ClientSecret: registered.Secret,
		Endpoint:     oauth2.Endpoint{AuthURL: metadata.Authorize, TokenURL: metadata.Token, AuthStyle: style},
		RedirectURL:  application.URL + "/callback",
		Scopes:       []string{"user:info", "user:check-access"},
	}
	verifier, state := oauth2.GenerateVerifier(), unique("state")
	page, err := client.Get(flow.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)) + "&idp=picoshift")
	must(t, err)
	target, values := form(t, page)
	values.Set("username", "developer")
	values.Set("password", "developer")
	page, err = client.PostForm(target.String(), values)
	must(t, err)
	target, values = form(t, page)
	if scopes := values["scope"]; strings.Join(scopes, " ") != "user:check-access user:info" && strings.Join(scopes, " ") != "user:info user:check-access" {
		t.Fatalf("the page asks for %q", scopes)
	}
	values.Set("approve", "Allow selected permissions")
	page, err = client.PostForm(target.String(), values)
	must(t, err)
	must(t, page.Body.Close())
	got := <-codes
	if got.Get("state") != state {
		t.Fatalf("the application gets %v", got)
	}

	ctx := contextWithClient(t, client)
	if _, err := flow.Exchange(ctx, got.Get("code"), oauth2.VerifierOption(oauth2.GenerateVerifier())); err == nil {
		t.Fatal("another verifier was taken")
	}
	// What was tried in vain is used up: once more from the start, where nobody has to allow anything again.
	page, err = client.Get(flow.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)) + "&idp=picoshift")
	must(t, err)
	if page.Request.URL.Host == strings.TrimPrefix(application.URL, "http://") {
		must(t, page.Body.Close())
	} else {
		target, values = form(t, page)
		values.Set("username", "developer")
		values.Set("password", "developer")
		page, err = client.PostForm(target.String(), values)
		must(t, err)
		must(t, page.Body.Close())
	}
	got = <-codes
	token, err := flow.Exchange(ctx, got.Get("code"), oauth2.VerifierOption(verifier))
	must(t, err)

	mine := rest.AnonymousClientConfig(config)
	mine.BearerToken = token.AccessToken
	users, err := userclient.NewForConfig(mine)
	must(t, err)
	me, err := users.UserV1().Users().Get(t.Context(), "~", metav1.GetOptions{})
	must(t, err)
	if me.Name != "developer" {
		t.Fatalf("the token is %s's", me.Name)
	}
	if _, err := users.UserV1().Users().List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "prevent this action") {
		t.Fatalf("beyond its scopes: %v", err)
	}
}

// contextWithClient makes the library call by a client of ours.
func contextWithClient(t *testing.T, client *http.Client) context.Context {
	t.Helper()
	return context.WithValue(t.Context(), oauth2.HTTPClient, client)
}
