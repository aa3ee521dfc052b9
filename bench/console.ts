import { parseArgs } from 'node:util';
import { startConsole } from '../src/orchestrator/console/console.fixture.ts';
import { putDemoFleet, STUCK } from '../src/orchestrator/console/demo-fleet.fixture.ts';

// Measures the median CPU time of this process for each page of the console, with many instances.

const { values } = parseArgs({
  options: { instances: { type: 'string', default: '10000' }, requests: { type: 'string', default: '15' } },
});
const instances = Number(values.instances);

await using shown = await startConsole();
await putDemoFleet(shown, instances);
const cookie = await shown.logIn();
const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;

process.stdout.write(`${instances} instances, ${values.requests} requests of each page\n`);
for (const path of [
  '/console',
  '/console/instances',
  '/console/instances?q=notebook-9999',
  '/console/instances?status=ONLINE&order=oldest',
  `/console/instances/${STUCK}`,
  '/console/alarms',
  '/console/work',
  '/console/capacity',
  '/console/platforms',
  '/console/orphans',
  '/console/accounts',
  '/console/audit',
]) {
  const costs: number[] = [];
  let bytes = 0;
  for (let request = 0; request < Number(values.requests); request++) {
    const before = process.cpuUsage();
    const reply = await shown.request(path, { headers: { cookie } });
    bytes = (await reply.text()).length;
    const { user, system } = process.cpuUsage(before);
    if (reply.status !== 200) throw new Error(`${path} is ${reply.status}`);
    costs.push((user + system) / 1000);
  }
  costs.sort((a, b) => a - b);
  process.stdout.write(
    `${median(costs).toFixed(1).padStart(7)} ms CPU  ${String(bytes).padStart(7)} bytes  ${path}\n`,
  );
}
