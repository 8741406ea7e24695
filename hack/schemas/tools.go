//go:build tools

// Package schemas pins the modules whose OpenAPI document and Go types apiserver/build.rs reads.
package schemas

import (
	_ "github.com/openshift/api/project/v1"
	_ "github.com/openshift/api/route/v1"
)
