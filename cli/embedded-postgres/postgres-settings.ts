/**
 * How the embedded server runs: beside the application on a small machine, for some dozen connections.
 * Given on the command line, so that an existing database directory follows a new release.
 */
export function listSettings(port: number): string[] {
  const settings: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    port,
    // No socket file in /tmp that a killed server leaves and two servers fight for.
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
    // The workers' processes cost more memory than they save time here.
    io_method: 'sync',
    max_worker_processes: 4,
    autovacuum_max_workers: 2,
    jit: 'off',
    // A query whose client was killed gives its locks back.
    client_connection_check_interval: '5s',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Errors of statements are the client's to log; what concerns the server is of level LOG and up.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}
