import { parseArgs } from 'node:util';
import { Market } from './buyers.ts';
import { Chaos } from './chaos.ts';
import { SoakClient } from './client.ts';
import { Journal } from './journal.ts';
import { toReport, toText } from './report.ts';
import { LEASE_MS, type Setting, startSetting } from './setting.ts';
import { balance, clear, sellOut } from './verdict.ts';
import { Watchers } from './watchers.ts';

// Real processes under load and blows, and then the books: `npx node test/soak/soak.ts --minutes 2`.

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now()) },
    /** `postgres://…` of an empty database, or `sqlite` for one server; without it a PostgreSQL of the run's own. */
    database: { type: 'string' },
    replicas: { type: 'string', default: '2' },
    buyers: { type: 'string', default: '6' },
    json: { type: 'boolean', default: false },
  },
});
const { seed, database } = values;
const [minutes, replicas, buyers] = [values.minutes, values.replicas, values.buyers].map(Number);
if (!minutes || !replicas || !buyers || Math.min(minutes, replicas, buyers) < 0)
  throw new RangeError('--minutes, --replicas and --buyers are numbers above 0');
const replicaCount = database === 'sqlite' ? 1 : replicas;

const journal = new Journal((line) => process.stderr.write(`${line}\n`));
journal.say(`seed ${seed}, ${minutes} minutes, ${replicaCount} servers`);

const setting = await startSetting({ database, replicaCount });
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void interrupt());
await orLost(soak(setting, { minutes, buyers }));
if (journal.losses.length > 0) setting.keep();
await setting[Symbol.asyncDispose]();
const report = toReport(journal, { seed, minutes, servers: replicaCount });
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : toText(report));
if (journal.losses.length > 0) process.stderr.write(`The logs of the processes are in ${setting.folder}\n`);
process.exit(journal.losses.length > 0 ? 1 : 0);

async function interrupt(): Promise<void> {
  await setting[Symbol.asyncDispose]();
  process.exit(130);
}

/** What breaks off has proved nothing: that is a loss too. */
async function orLost(work: Promise<void>): Promise<void> {
  await work.catch((error) =>
    journal.lose('the soak itself broke off', {
      error: error instanceof Error ? error.stack : String(error),
    }),
  );
}

async function soak(setting: Setting, load: { minutes: number; buyers: number }): Promise<void> {
  const { replicas, platform, database, catalog } = setting;
  const client = new SoakClient(replicas, journal);
  const market = new Market({ client, replicas, journal, seed });
  const watchers = new Watchers({ market, client, database, platform, catalog, journal });
  const chaos = new Chaos({ replicas, platform, database, journal, seed, leaseMs: LEASE_MS });
  const watching = [...replicas.map((replica) => watchers.poll(replica)), watchers.count()].map(orLost);
  const buying = Array.from({ length: load.buyers }, (_, index) => orLost(market.buy(`buyer ${index}`)));

  await chaos.rage(Date.now() + load.minutes * 60_000);
  await chaos.end();
  journal.say('healed');
  market.close();
  await Promise.all(buying);
  await market.settle();
  if (!market.possessions.some(({ goneAt }) => goneAt !== undefined))
    journal.lose('the soak saw no instance come and go: it has proved nothing');
  journal.quietAfterMs = await balance(market, setting, journal);
  if (journal.quietAfterMs !== null) {
    journal.say(`quiet after ${journal.quietAfterMs} ms`);
    await sellOut(market, setting, journal);
    await clear(market, setting, journal);
  }
  await watchers.stop();
  await Promise.all(watching);
  await chaos.countFaults();
}
