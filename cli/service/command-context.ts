import type { ProcessLifecycle } from '../../shared/service/lifecycle.ts';

/** The arguments of a command. */
export interface CommandContext {
  life: ProcessLifecycle;
  environment: Record<string, string | undefined>;
}
