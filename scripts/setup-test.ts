/** `npm run setup:test`: installs the programs that tests use and this machine lacks, as far as it can. */
import { listAbsent, setUpPrograms } from './install-programs.ts';

setUpPrograms();
for (const line of listAbsent()) console.error(line);
