import { main } from '../../../src/berth.ts';
import { ignoreClosedPipes } from '../../../src/runtime/print.ts';
import { useTimes } from './quick-times.ts';

// A test build of `berth` with the times beside its configuration.

ignoreClosedPipes();
useTimes(process.argv);
await main(process.argv);
