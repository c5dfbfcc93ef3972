#!/bin/sh
# A custom plugin of node problem detector: is the RDMA fabric of this node critically ill, as `rdma_exporter check` says?
#   exit 0  no: nothing is found, or warnings only
#   exit 1  yes, with what in at most 80 characters
#   exit 2  nobody knows: it could not be judged, or there was no answer in 5 s. Not a problem of the node
# Arguments go to check: --daemon=http://ADDRESS:PORT, --only=ALERT. RDMA_EXPORTER names the program, RDMA_SECONDS is another time to wait.
seconds=${RDMA_SECONDS:-5}
out=$(timeout -k 1 "$seconds" "${RDMA_EXPORTER:-rdma_exporter}" check --severity=critical --timeout=$((seconds - 1))s "$@" 2>/dev/null)
case $? in
0 | 1)
  echo "The RDMA fabric is well"
  exit 0
  ;;
2)
  # Rows of the table: severity, state, since, alert, where, what; two spaces and more between them.
  printf '%s\n' "$out" | awk -F '  +' '
    $1 == "critical" && $2 == "firing" { n++; if (n == 1) { first = $4; if ($5 != "-") first = first " " $5 } }
    END {
      more = n > 1 ? " and " n - 1 " more" : ""
      if (n == 0) first = "critical"
      print substr(first, 1, 80 - length(more)) more
    }'
  exit 1
  ;;
esac
echo "The RDMA fabric could not be judged"
exit 2
