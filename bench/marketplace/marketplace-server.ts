import { serveMarketplace } from '../../src/compose/serve/marketplace.ts';
import { loadMarketplaceConfig } from '../../src/config/marketplace/load.ts';
import { answerBench } from '../support/measured-process.ts';

// `berth marketplace`, unchanged.
const [file = ''] = process.argv.slice(2);
const config = loadMarketplaceConfig({ file, flags: {}, env: {} });
const { baseUrl } = await serveMarketplace({ config, env: { BENCH_KEY: 'bench' } });
answerBench({ port: Number(new URL(baseUrl).port) });
