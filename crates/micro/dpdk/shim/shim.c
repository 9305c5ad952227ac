#include <string.h>

#include <rte_config.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "shim.h"

/* Descriptors of a queue where the driver takes so many. */
#define DESCRIPTORS 1024
/* Frames that a thread keeps for itself. */
#define CACHE 256

int kvm_eal_init(int argc, char **argv) { return rte_eal_init(argc, argv); }
int kvm_errno(void) { return rte_errno; }
const char *kvm_error_text(int number) { return rte_strerror(number); }
int kvm_thread_register(void) { return rte_thread_register(); }
void kvm_thread_unregister(void) { rte_thread_unregister(); }

uint16_t kvm_port_count(void) { return rte_eth_dev_count_avail(); }

int kvm_port_name(uint16_t index, char name[64]) {
    uint16_t port, at = 0;
    RTE_ETH_FOREACH_DEV(port) {
        if (at++ == index)
            return rte_eth_dev_get_name_by_port(port, name);
    }
    return -ENODEV;
}

int kvm_port_find(const char *name, uint16_t *port) {
    return rte_eth_dev_get_port_by_name(name, port);
}

int kvm_ring_pair(unsigned entries, uint16_t ports[2]) {
    /* Each direction has one thread at either end. */
    unsigned flags = RING_F_SP_ENQ | RING_F_SC_DEQ;
    struct rte_ring *there = rte_ring_create("kvmeter_there", entries, SOCKET_ID_ANY, flags);
    struct rte_ring *back = rte_ring_create("kvmeter_back", entries, SOCKET_ID_ANY, flags);
    if (there == NULL || back == NULL)
        return -rte_errno;
    int client = rte_eth_from_rings("net_ring_client", &back, 1, &there, 1, SOCKET_ID_ANY);
    if (client < 0)
        return -rte_errno;
    int server = rte_eth_from_rings("net_ring_server", &there, 1, &back, 1, SOCKET_ID_ANY);
    if (server < 0)
        return -rte_errno;
    ports[0] = (uint16_t)client;
    ports[1] = (uint16_t)server;
    return 0;
}

struct rte_mempool *kvm_pool(unsigned frames, unsigned room) {
    return rte_pktmbuf_pool_create("kvmeter_frames", frames, CACHE, 0,
                                   RTE_PKTMBUF_HEADROOM + room, SOCKET_ID_ANY);
}

int kvm_port_limits(uint16_t port, uint16_t *least, uint16_t *most) {
    struct rte_eth_dev_info info;
    int failed = rte_eth_dev_info_get(port, &info);
    if (failed != 0)
        return failed;
    *least = info.min_mtu;
    *most = info.max_mtu;
    return 0;
}

int kvm_port_start(uint16_t port, struct rte_mempool *pool, uint16_t mtu, struct kvm_facts *facts) {
    struct rte_eth_conf conf;
    struct rte_ether_addr mac;
    uint16_t receive = DESCRIPTORS, send = DESCRIPTORS;
    int failed;
    memset(&conf, 0, sizeof(conf));
    conf.rxmode.mtu = mtu;
    if ((failed = rte_eth_dev_configure(port, 1, 1, &conf)) != 0)
        return failed;
    if ((failed = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &send)) != 0)
        return failed;
    int node = rte_eth_dev_socket_id(port);
    unsigned socket = node < 0 ? (unsigned)SOCKET_ID_ANY : (unsigned)node;
    if ((failed = rte_eth_rx_queue_setup(port, 0, receive, socket, NULL, pool)) != 0)
        return failed;
    if ((failed = rte_eth_tx_queue_setup(port, 0, send, socket, NULL)) != 0)
        return failed;
    if ((failed = rte_eth_dev_start(port)) != 0)
        return failed;
    if ((failed = rte_eth_macaddr_get(port, &mac)) != 0)
        return failed;
    memcpy(facts->mac, mac.addr_bytes, sizeof(facts->mac));
    facts->mtu = mtu;
    facts->receive_descriptors = receive;
    facts->send_descriptors = send;
    return 0;
}

int kvm_port_is_up(uint16_t port) {
    struct rte_eth_link link;
    memset(&link, 0, sizeof(link));
    int failed = rte_eth_link_get_nowait(port, &link);
    return failed != 0 ? failed : link.link_status == RTE_ETH_LINK_UP;
}

void kvm_port_close(uint16_t port) {
    /* A port that cannot be stopped cannot be closed either; the process ends soon. */
    if (rte_eth_dev_stop(port) == 0)
        (void)rte_eth_dev_close(port);
}

int kvm_port_counts(uint16_t port, struct kvm_counts *counts) {
    struct rte_eth_stats stats;
    int failed = rte_eth_stats_get(port, &stats);
    if (failed != 0)
        return failed;
    counts->received = stats.ipackets;
    counts->sent = stats.opackets;
    counts->missed = stats.imissed;
    counts->receive_errors = stats.ierrors;
    counts->send_errors = stats.oerrors;
    counts->no_frames = stats.rx_nombuf;
    return 0;
}

struct rte_mbuf *kvm_frame(struct rte_mempool *pool, uint16_t length, uint8_t **data) {
    struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
    if (frame == NULL)
        return NULL;
    char *start = rte_pktmbuf_append(frame, length);
    if (start == NULL) {
        rte_pktmbuf_free(frame);
        return NULL;
    }
    *data = (uint8_t *)start;
    return frame;
}

void kvm_free(struct rte_mbuf *frame) { rte_pktmbuf_free(frame); }

uint16_t kvm_receive(uint16_t port, struct rte_mbuf **frames, uint8_t **data, uint32_t *length,
                     uint16_t most) {
    uint16_t count = rte_eth_rx_burst(port, 0, frames, most), kept = 0;
    for (uint16_t at = 0; at < count; at++) {
        struct rte_mbuf *frame = frames[at];
        /* Frames as long as the MTU allows are in one piece; others are not ours. */
        if (frame->nb_segs != 1) {
            rte_pktmbuf_free(frame);
            continue;
        }
        frames[kept] = frame;
        data[kept] = rte_pktmbuf_mtod(frame, uint8_t *);
        length[kept] = rte_pktmbuf_data_len(frame);
        kept++;
    }
    return kept;
}

uint16_t kvm_send(uint16_t port, struct rte_mbuf **frames, uint16_t count) {
    return rte_eth_tx_burst(port, 0, frames, count);
}
