/** `windlass up` that loads its modules while the previous one stops, and starts when it is sent a message. */
import { once } from 'node:events';
import '../../cli/service/up.ts';

const leave = () => process.exit(0);
process.on('disconnect', leave);
await once(process, 'message');
process.off('disconnect', leave);
await import('../../cli/main.ts');
