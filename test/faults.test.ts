import { describeFaults } from './faults/suite.ts';
import { describeUploadFaults } from './faults/uploads.ts';

describeFaults('postgres');
describeUploadFaults();
