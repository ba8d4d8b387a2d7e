import { createProgram } from './program.ts';
import { refuseServiceCommands } from './refuse-service-commands.ts';
import { runProgram } from './run-program.ts';

/** The command `windlass` in one file, for users: it calls services and is none. */
const words = process.argv.slice(2);
await runProgram(createProgram(refuseServiceCommands), words.length === 0 ? ['--help'] : words);
