import type { ProcessLifecycle } from '../../shared/process/lifecycle.ts';

/** The arguments of a command. */
export interface CommandContext {
  life: ProcessLifecycle;
  environment: Record<string, string | undefined>;
}
