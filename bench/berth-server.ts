import { serve } from '../src/cli/serve.ts';
import { answerBench } from './measured-process.ts';

// `berth serve` as it is, with rate limits that count every poll and refuse none of this load.
const [databasePath = '', configFile = ''] = process.argv.slice(2);
const { baseUrl } = await serve({
  configFile,
  flags: { port: '0', database: `sqlite:${databasePath}` },
  env: {},
});
answerBench({ port: Number(new URL(baseUrl).port) });
