#!/bin/sh
# A custom plugin of node problem detector: is this node to be drained for its RDMA fabric, as `rdma_exporter check --drain` says?
#   exit 0  no
#   exit 1  yes, with the alert that asks for it in at most 80 characters
#   exit 2  unknown: it could not be evaluated, or there was no answer in 5 s. Not a problem of the node
# Arguments go to check: --daemon=http://ADDRESS:PORT, --only=ALERT. RDMA_EXPORTER names the program, RDMA_SECONDS is another time to wait.
seconds=${RDMA_SECONDS:-5}
out=$(timeout -k 1 "$seconds" "${RDMA_EXPORTER:-rdma_exporter}" check --drain --timeout=$((seconds - 1))s "$@" 2>/dev/null)
case $? in
0)
  echo "The RDMA fabric of this node is fit for jobs"
  exit 0
  ;;
2)
  # Rows of the table: drain, alert, where, what; two spaces and more between them.
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
