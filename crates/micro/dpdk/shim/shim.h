/* What Rust calls: DPDK's inlined functions and its large structures stay behind this. */
#ifndef KVMETER_DPDK_SHIM_H
#define KVMETER_DPDK_SHIM_H
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;

struct kvm_facts {
    uint8_t mac[6];
    uint16_t mtu;
    uint16_t receive_descriptors;
    uint16_t send_descriptors;
};

struct kvm_counts {
    uint64_t received, sent, missed, receive_errors, send_errors, no_frames;
};

int kvm_eal_init(int argc, char **argv);
int kvm_errno(void);
const char *kvm_error_text(int number);
int kvm_thread_register(void);
void kvm_thread_unregister(void);

uint16_t kvm_port_count(void);
int kvm_port_name(uint16_t index, char name[64]);
int kvm_port_find(const char *name, uint16_t *port);
int kvm_ring_pair(unsigned entries, uint16_t ports[2]);

struct rte_mempool *kvm_pool(unsigned frames, unsigned room);
int kvm_port_limits(uint16_t port, uint16_t *least, uint16_t *most);
int kvm_port_start(uint16_t port, struct rte_mempool *pool, uint16_t mtu, struct kvm_facts *facts);
int kvm_port_is_up(uint16_t port);
void kvm_port_close(uint16_t port);
int kvm_port_counts(uint16_t port, struct kvm_counts *counts);

struct rte_mbuf *kvm_frame(struct rte_mempool *pool, uint16_t length, uint8_t **data);
void kvm_free(struct rte_mbuf *frame);
uint16_t kvm_receive(uint16_t port, struct rte_mbuf **frames, uint8_t **data, uint32_t *length,
                     uint16_t most);
uint16_t kvm_send(uint16_t port, struct rte_mbuf **frames, uint16_t count);
#endif
