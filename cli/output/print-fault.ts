import { redact } from '../../shared/secrets/redact.ts';

/** The members of an error, as logs have it. */
interface Fault {
  type?: string;
  message?: string;
  stack?: string;
  cause?: Fault;
}

/** Prints a fault of the program itself, without the parameters of statements, which may hold hashes. */
export function printFault(error: unknown): void {
  let told = '';
  for (let fault = redact(error) as Fault | undefined; fault?.message; fault = fault.cause)
    told += `${fault.stack ?? `${fault.type}: ${fault.message}`}\n`;
  process.stderr.write(told || `windlass: ${String(error)}\n`);
}
