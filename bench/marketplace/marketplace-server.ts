import { serveMarketplace } from '../../src/compose/serve/marketplace.ts';
import { loadMarketplaceConfig } from '../../src/config/marketplace/load.ts';
import { defaultOptions } from '../../src/marketplace/model/options.ts';
import { answerBench } from '../support/measured-process.ts';

// `berth marketplace`, unchanged but for the interval between two polls of a deployment.
const [file = '', min, max] = process.argv.slice(2);
if (min !== undefined) defaultOptions.polling.intervalMs = [1_000 * Number(min), 1_000 * Number(max)];
const config = loadMarketplaceConfig({ file, flags: {}, env: {} });
const { baseUrl } = await serveMarketplace({ config, env: { BENCH_KEY: 'bench' } });
answerBench({ port: Number(new URL(baseUrl).port) });
