/**
 * Settings for a server on the same small machine as the application, with some dozen connections. They are passed on the
 * command line, so that a new release changes them for existing clusters, too.
 */
export function listSettings(port: number): string[] {
  const settings: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    port,
    // A killed server leaves its socket file in /tmp, where two servers would conflict.
    unix_socket_directories: '',
    cluster_name: 'windlass',
    max_connections: 100,
    shared_buffers: '32MB',
    huge_pages: 'off',
    maintenance_work_mem: '32MB',
    // One machine: no replicas to feed, no subscriptions.
    wal_level: 'minimal',
    max_wal_senders: 0,
    max_logical_replication_workers: 0,
    // Bounds the recovery after a kill to some seconds.
    max_wal_size: '512MB',
    // I/O workers would cost more memory than they save time here.
    io_method: 'sync',
    max_worker_processes: 4,
    autovacuum_max_workers: 2,
    jit: 'off',
    // Ends the query of a killed client, which releases its locks.
    client_connection_check_interval: '5s',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Clients log the errors of their statements; messages about the server have level LOG and above.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}
