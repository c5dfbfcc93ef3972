#!/bin/sh
# Custom plugin for node problem detector: result of `rdma_exporter check --drain`.
#   exit 0  no drain
#   exit 1  cordon or evict; prints the alert that requires it, at most 80 characters
#   exit 2  unknown: not evaluated, or no answer within 5s. Not a problem of the node
# Arguments are passed to check: --daemon=http://ADDRESS:PORT, --only=ALERT. RDMA_EXPORTER: path of the program. RDMA_SECONDS: timeout.
seconds=${RDMA_SECONDS:-5}
out=$(timeout -k 1 "$seconds" "${RDMA_EXPORTER:-rdma_exporter}" check --drain --timeout=$((seconds - 1))s "$@" 2>/dev/null)
case $? in
0)
  echo "The RDMA fabric of this node is fit for jobs"
  exit 0
  ;;
2)
  # Table rows: drain, alert, where, what; separated by two or more spaces.
  printf '%s\n' "$out" | awk -F '  +' '
    $1 == "cordon" || $1 == "evict" { n++; if (n == 1) { first = $1 ": " $2; if ($3 != "") first = first " " $3 } }
    END {
      more = n > 1 ? " and " n - 1 " more" : ""
      if (n == 0) first = "drain"
      print substr(first, 1, 80 - length(more)) more
    }'
  exit 1
  ;;
esac
echo "The state of the RDMA fabric of this node is unknown"
exit 2
