import { main } from '../../../src/berth.ts';
import { useTimes } from './quick-times.ts';

// A test build of `berth` with the times beside its configuration.

useTimes(process.argv);
await main(process.argv);
