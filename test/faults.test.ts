import { describeFaults } from './faults/suite.ts';

describeFaults('postgres');
