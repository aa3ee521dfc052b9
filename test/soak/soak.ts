import { parseArgs } from 'node:util';
import { Market } from './buyers.ts';
import { Chaos } from './chaos.ts';
import { SoakClient } from './client.ts';
import { Journal } from './journal.ts';
import { toReport, toText } from './report.ts';
import { LEASE_MS, type Setting, startSetting } from './setting.ts';
import { balance, clear, sellOut } from './verdict.ts';
import { Watchers } from './watchers.ts';

// Real processes under load and blows, and then the books: `npm run soak -- --minutes 2`.

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
const replicaCount = database === 'sqlite' ? 1 : Number(values.replicas);

const journal = new Journal((line) => process.stderr.write(`${line}\n`));
journal.say(`seed ${seed}, ${values.minutes} minutes, ${replicaCount} servers`);

const setting = await startSetting({ database, replicaCount });
try {
  await soak(setting);
} catch (error) {
  journal.lose('the soak itself broke off', { error: error instanceof Error ? error.stack : String(error) });
}
if (journal.losses.length > 0) setting.keep();
await setting[Symbol.asyncDispose]();
const report = toReport(journal, { seed, minutes: Number(values.minutes), servers: replicaCount });
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : toText(report));
if (journal.losses.length > 0) process.stderr.write(`The logs of the processes are in ${setting.folder}\n`);
process.exit(journal.losses.length > 0 ? 1 : 0);

async function soak(setting: Setting): Promise<void> {
  const { replicas, platform, database, catalog } = setting;
  const client = new SoakClient(replicas, journal);
  const market = new Market({ client, replicas, journal, seed });
  const watchers = new Watchers({ market, client, database, platform, catalog, journal });
  const chaos = new Chaos({ replicas, platform, database, journal, seed, leaseMs: LEASE_MS });
  const watching = [...replicas.map((replica) => watchers.poll(replica)), watchers.count()];
  const buying = Array.from({ length: Number(values.buyers) }, (_, index) => market.buy(`buyer ${index}`));

  await chaos.rage(Date.now() + Number(values.minutes) * 60_000);
  await chaos.end();
  journal.say('healed');
  market.close();
  await Promise.all(buying);
  await market.settle();
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
