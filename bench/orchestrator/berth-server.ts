import { dirname } from 'node:path';
import { serveOrchestrator } from '../../src/compose/serve/orchestrator.ts';
import { loadConfig } from '../../src/config/load.ts';
import { answerBench } from '../support/measured-process.ts';

// `berth serve`, unchanged, with rate limits that count every poll and refuse none of this load.
const [database = '', configFile = ''] = process.argv.slice(2);
// If the database is not a file, the simulator keeps its state in the working directory.
process.chdir(dirname(configFile));
const { config } = loadConfig({ file: configFile, flags: { port: '0', database }, env: {} });
const { baseUrl } = await serveOrchestrator({ config, env: {} });
answerBench({ port: Number(new URL(baseUrl).port) });
