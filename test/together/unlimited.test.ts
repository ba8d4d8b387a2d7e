import { runTogether } from '../harness/shared-stacks.ts';
import { GROUPS } from './groups.ts';

runTogether(GROUPS.unlimited);
