import { createProgram } from './program.ts';
import { runProgram } from './run-program.ts';
import { addServiceCommands } from './service/add-service-commands.ts';

/** The command `windlass` of an installation: without words it starts the service. */
const words = process.argv.slice(2);
await runProgram(createProgram(addServiceCommands), words.length === 0 ? ['up'] : words);
