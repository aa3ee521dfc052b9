import { parseArgs } from 'node:util';
import type { Bills } from './bills.ts';
import { Buyers } from './buyers.ts';
import { MarketClient } from './client.ts';
import { Dice, sleep } from './dice.ts';
import { Fleet } from './fleet.ts';
import { Journal } from './journal.ts';
import { toReport, toText } from './report.ts';
import { countDeployments, readRows } from './rows.ts';
import { injectServerFaults } from './server-faults.ts';
import { type Setting, startSetting } from './setting.ts';
import { clear, comeToRest, judgeBooks, judgeOrders, together } from './verdict.ts';

// Three servers of one marketplace, one of which is killed or stopped again and again, and then its books:
// `npx node test/soak/marketplace/soak.ts --minutes 10`.

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    deployments: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(Date.now()) },
    buyers: { type: 'string', default: '12' },
    servers: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
});
const { seed } = values;
const [minutes, deployments, buyerCount, servers] = [
  ...[values.minutes, values.deployments, values.buyers, values.servers],
].map(Number) as [number, number, number, number];
if (![minutes, deployments, buyerCount, servers].every((number) => number > 0))
  throw new RangeError('--minutes, --deployments, --buyers and --servers are numbers above 0');

const TEAMS = 4;
const RUNNING_WITHIN_MS = 300_000;

const journal = new Journal((line) => process.stderr.write(`${line}\n`));
journal.say(`seed ${seed}, ${minutes} minutes, ${deployments} deployments, ${servers} servers`);
const setting = await startSetting({ servers, teams: TEAMS, seed });
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void interrupt());
const fleet = new Fleet();
const parts = { setting, fleet, journal };
let bills: Bills | null = null;
await soak().catch((error) =>
  // What breaks off has proved nothing.
  journal.lose('the soak itself broke off', {
    error: error instanceof Error ? error.stack : String(error),
  }),
);
const deeds = await countDeeds(setting);
if (journal.losses.length > 0) setting.keep();
await setting[Symbol.asyncDispose]();
const report = toReport(journal, { seed, minutes, deployments, servers }, { deeds, bills });
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : toText(report));
if (journal.losses.length > 0) process.stderr.write(`The logs of the servers are in ${setting.folder}\n`);
process.exit(journal.losses.length > 0 ? 1 : 0);

async function interrupt(): Promise<void> {
  await setting[Symbol.asyncDispose]();
  process.exit(130);
}

async function soak(): Promise<void> {
  const dice = new Dice(seed, 'soak');
  const client = new MarketClient(setting.servers, journal);
  const buyers = new Buyers({ client, fleet, teams: setting.teams, journal, seed, deployments });
  await fill(buyers, dice);
  const buying = Array.from({ length: buyerCount }, (_, index) => buyers.buy(`buyer ${index}`));
  await injectServerFaults(setting.servers, journal, {
    seed,
    until: Date.now() + minutes * 60_000,
    wentOn: (server, from) => client.wentOn(server, from),
  });
  buyers.close();
  await Promise.all(buying);
  journal.say('the last fault is over, and nobody buys any more');
  journal.quietAfterMs = await comeToRest(parts);
  await judgeOrders(parts);
  journal.say(`quiet after ${journal.quietAfterMs} ms`);
  await clear(parts, client, dice);
  bills = await judgeBooks(parts);
  for (const verb of ['pause', 'resume', 'attach', 'terminate'] as const)
    if (!fleet.orders.some((order) => order.verb === verb && order.status === 200))
      journal.lose('an order never succeeded: the soak has proved nothing of it', { verb });
}

/** Creates all deployments, and waits until they run. */
async function fill(buyers: Buyers, dice: Dice): Promise<void> {
  await sold(buyers, dice);
  await together(Array.from({ length: deployments - 1 }), async () => void (await buyers.create(dice)));
  journal.say(`${fleet.deployments.size} deployments are created`);
  const deadline = Date.now() + RUNNING_WITHIN_MS;
  for (;;) {
    const { running = 0, ...others } = await countDeployments(setting.url);
    if (running >= fleet.deployments.size) break;
    if (Date.now() > deadline)
      throw new Error(`${running} of ${deployments} deployments run: ${JSON.stringify(others)}`);
    await sleep(1_000);
  }
  const { deployments: rows } = await readRows(setting.url);
  for (const { id } of rows) {
    const deployment = fleet.deployments.get(id);
    if (deployment !== undefined) deployment.status = 'running';
  }
  journal.say('all deployments run');
}

/** Creates the first one as soon as every server knows what is sold. */
async function sold(buyers: Buyers, dice: Dice): Promise<void> {
  for (const { baseUrl } of setting.servers)
    for (;;) {
      const { data } = (await (await fetch(`${baseUrl}/api/gpu-offers`)).json()) as { data: unknown[] };
      if (data.length > 0) break;
      await sleep(100);
    }
  await buyers.create(dice);
}

async function countDeeds({ truth }: Setting): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind } of (await truth().catch(() => ({ deeds: [] }))).deeds)
    counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
