//go:build tools

// Package tools pins what the test server is built from.
package tools

import _ "go.etcd.io/etcd/server/v3"
