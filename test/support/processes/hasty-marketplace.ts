import { main } from '../../../src/berth.ts';
import { defaultOptions } from '../../../src/marketplace/model/options.ts';

// A test build of `berth` whose marketplace waits less than by default: BERTH_TEST_OPTIONS has those options.

const { polling, billing, ...others } = JSON.parse(process.env['BERTH_TEST_OPTIONS'] ?? '{}');
Object.assign(defaultOptions, others);
Object.assign(defaultOptions.polling, polling);
Object.assign(defaultOptions.billing, billing);
await main(process.argv);
