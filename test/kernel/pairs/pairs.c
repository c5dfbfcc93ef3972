// pairs DEVICE GIDINDEX MODE N [GID]: connects RC queue pairs of one device with each other, two at a time.
//
// hold:  N pairs; prints their numbers, then waits.
// lose:  the same; the second of each pair is destroyed, the first sends until its retries are exceeded, then waits.
// leave: as lose, and ends at the first failed completion.
// error: N pairs are moved to ERR and destroyed.
// cycle: N pairs are connected and destroyed, one after the other.
// to:    N attempts to connect to GID.
// end:   one end of a pair with GID: prints its number, reads the peer's and connects; then sends once for each number that it reads.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char buffer[4096];
static union ibv_gid gid;
static int gid_index;

static void check(int failed, const char *what)
{
	if (failed) {
		printf("%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check(!list, "list");
	for (; *list; list++)
		if (!strcmp(ibv_get_device_name(*list), name))
			context = ibv_open_device(*list);
	check(!context, "open");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 1024, NULL, NULL, 0);
	check(!pd || !cq, "resources");
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	check(!mr, "memory");
	check(ibv_query_gid(context, 1, gid_index, &gid), "gid");
}

static struct ibv_qp *create(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	check(!qp, "create");
	return qp;
}

// join connects a queue pair, and returns the errno of its move to RTR.
static int join(struct ibv_qp *qp, union ibv_gid *to, unsigned int number)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = number, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = *to, .sgid_index = gid_index, .hop_limit = 1 } },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	int failed;

	check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	failed = ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (failed)
		return failed;
	check(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	return 0;
}

static void pair(struct ibv_qp **a, struct ibv_qp **b)
{
	*a = create();
	*b = create();
	check(join(*a, &gid, (*b)->qp_num) || join(*b, &gid, (*a)->qp_num), "RTR");
}

static void send_one(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)buffer, 64, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	check(ibv_post_send(qp, &wr, &bad), "send");
}

static void cycle(int n, int through_error)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *a, *b;

	while (n-- > 0) {
		pair(&a, &b);
		if (through_error)
			check(ibv_modify_qp(a, &err, IBV_QP_STATE) || ibv_modify_qp(b, &err, IBV_QP_STATE), "ERR");
		ibv_destroy_qp(a);
		ibv_destroy_qp(b);
	}
}

static void one_end(const char *to)
{
	struct ibv_qp *qp = create();
	struct ibv_sge sge = { (uintptr_t)buffer, 64, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	unsigned int number;
	struct ibv_wc wc;
	int i;

	printf("number %u\n", qp->qp_num);
	check(inet_pton(AF_INET6, to, &gid) != 1 || scanf("%u", &number) != 1 || join(qp, &gid, number), "peer");
	for (i = 0; i < 4; i++)
		check(ibv_post_recv(qp, &wr, &bad), "receive");
	printf("ready %d\n", getpid());
	while (scanf("%u", &number) == 1) {
		send_one(qp);
		while (!ibv_poll_cq(cq, 1, &wc))
			usleep(1000);
		printf("completion %d\n", wc.status);
	}
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 4 ? argv[3] : "";
	int n = argc > 4 ? atoi(argv[4]) : 0, i, failed = 0;
	struct ibv_qp **a = calloc(n + 1, sizeof(*a)), **b = calloc(n + 1, sizeof(*b));
	struct ibv_wc wc;

	setlinebuf(stdout);
	check(n <= 0, "arguments");
	gid_index = atoi(argv[2]);
	open_device(argv[1]);
	if (!strcmp(mode, "to")) {
		check(argc < 6 || inet_pton(AF_INET6, argv[5], &gid) != 1, "GID");
		for (i = 0; i < n; i++)
			printf("failed %d\n", join(create(), &gid, 17));
		return 0;
	}
	if (!strcmp(mode, "cycle") || !strcmp(mode, "error")) {
		cycle(n, !strcmp(mode, "error"));
		printf("done\n");
		return 0;
	}
	if (!strcmp(mode, "end")) {
		one_end(argc > 5 ? argv[5] : "");
		return 0;
	}
	for (i = 0; i < n; i++) {
		pair(&a[i], &b[i]);
		printf("%u %u\n", a[i]->qp_num, b[i]->qp_num);
	}
	printf("ready %d\n", getpid());
	if (strcmp(mode, "hold")) {
		for (i = 0; i < n; i++) {
			ibv_destroy_qp(b[i]);
			send_one(a[i]);
		}
		while (failed < n && (failed == 0 || strcmp(mode, "leave"))) {
			if (ibv_poll_cq(cq, 1, &wc) > 0 && wc.status)
				printf("completion %d\n", wc.status), failed++;
			else
				usleep(1000);
		}
		if (!strcmp(mode, "leave"))
			return 0;
	}
	for (;;)
		pause();
}
