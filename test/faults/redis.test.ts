import { describeFaults } from './suite.ts';

// A file of its own, so that both queues are tested side by side.
describeFaults('redis');
