import { describeFaults } from './suite.ts';
import { describeUploadFaults } from './uploads.ts';

describeFaults('postgres');
describeUploadFaults();
