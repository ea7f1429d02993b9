//! Resource quantities (`k8s.io/apimachinery/pkg/api/resource/quantity.go`).
