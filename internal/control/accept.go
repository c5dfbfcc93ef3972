package control

import (
	"context"
	"net/http"
)

// AcceptPath is the path on the control sockets: GET lists, POST discards.
const AcceptPath = "/accept"

// Accepted is the state that an exporter discards, and the reasons for unknown names.
type Accepted struct {
	Forgets []string          `json:"forgets"`
	Unknown map[string]string `json:"unknown,omitempty"`
}

// HandleAccept adds the handlers on a socket. No names means all.
func HandleAccept(mux *http.ServeMux, plan, accept func(ctx context.Context, names []string) (Accepted, error)) {
	for method, answer := range map[string]func(context.Context, []string) (Accepted, error){
		http.MethodGet: plan, http.MethodPost: accept,
	} {
		Handle(mux, method+" "+AcceptPath, func(r *http.Request) (Accepted, error) {
			return answer(r.Context(), r.URL.Query()["name"])
		})
	}
}
