/** What is needed here of the answer of GET /jobs/(id)/command. */
interface Asked {
  cwd: string | null;
  env: string[];
  timeout: number | null;
  batch: {
    nodes?: number;
    tasks?: number;
    cpus?: number;
    /** Bytes. */
    memory?: number;
    /** Seconds. */
    time?: number;
    queue?: string;
    account?: string;
    options?: string[];
  } | null;
}

const GIB = 2 ** 30;

/**
 * A job's request as the form's fields for a new one. The service does not give the values of its variables: the form
 * refuses each until it has one.
 */
export function toDraft(
  { cwd, env, timeout, batch }: Asked,
  name: string | null,
): Record<string, string> {
  const { nodes, tasks, cpus, memory, time, queue, account, options } = batch ?? {};
  const fields = {
    name,
    cwd,
    timeout,
    nodes,
    tasks,
    cpus,
    queue,
    account,
    env: env.join('\n'),
    memory: memory && memory / GIB,
    minutes: time && Math.ceil(time / 60),
    options: options?.join('\n'),
  };
  return Object.fromEntries(
    Object.entries(fields).flatMap(([field, value]) =>
      value === null || value === undefined || value === '' ? [] : [[field, String(value)]],
    ),
  );
}
