import type { Client } from '../../servers/api-client.ts';
import { type CodeHost, startCodeHost } from '../harness/hosts/pam-sshd.ts';
import { addHost } from '../harness/hosts/remote.ts';
import { startSlurm } from '../harness/hosts/slurm.ts';
import type { TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';

/** What some tests of a client use where the machine has it. */
export interface OptionalHosts {
  /** A host named `codes`, which asks for a one-time code. */
  codes?: CodeHost;
  /** The variables that tell the tests what there is. */
  environment: Record<string, string>;
  stop(): Promise<void>;
}

/** Starts them; `sshd` gets a Slurm. */
export async function startOptionalHosts(client: Client, sshd: TestSshd): Promise<OptionalHosts> {
  const started: { stop(): Promise<void> }[] = [];
  const environment: Record<string, string> = {};
  const stop = async () => {
    for (const one of started) await one.stop();
  };
  try {
    if (!missingPrograms('slurmctld', 'slurmd', 'sbatch', 'munged')) {
      const slurm = await startSlurm();
      started.push(slurm);
      slurm.offerTo(sshd);
      environment.WINDLASS_TEST_SLURM = 'here';
    }
    if (missingRoot() ?? missingPrograms('google-authenticator')) return { environment, stop };
    const codes = await startCodeHost();
    started.push(codes);
    await addHost(client, codes.sshd, { name: 'codes' });
    environment.WINDLASS_TEST_CODES = codes.account.username;
    return { codes, environment, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
