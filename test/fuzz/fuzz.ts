import { parseArgs } from 'node:util';
import { toCurl } from '../../conformance/http/curl.ts';
import { Dice } from '../soak/dice.ts';
import { Document, type Operation } from './document.ts';
import { type Answer, findingsIn } from './judge.ts';
import { drawRequest, type Sent } from './requests.ts';
import { type Known, startSetting, type Target } from './setting.ts';
import { Values } from './values.ts';

/**
 * Sends drawn requests, lawful and not, to every operation of the published documents, and judges each reply by them:
 * `node test/fuzz/fuzz.ts [--seed N] [--requests N] [--postgres]`. Each finding has a curl command. The same seed draws
 * the same; ids and the states that requests meet differ.
 */
const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    requests: { type: 'string', default: '500' },
    postgres: { type: 'boolean', default: false },
  },
});
/** Requests at the same time. */
const LANES = 12;
const KNOWN_AT_ONCE = 24;
/** What a reply of success names: under which name, from which of its fields. */
const LEARNT: Readonly<Record<string, readonly [name: string, field: string]>> = {
  createInstance: ['instanceId', 'id'],
  createDeployment: ['deploymentId', 'id'],
  createSshKey: ['id', 'id'],
  createAccount: ['account', 'name'],
  createKey: ['keyId', 'id'],
  planMaintenance: ['maintenanceId', 'id'],
  issueToken: ['access_token', 'access_token'],
};

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const findings = new Map<string, number>();
const note = (what: string, example: string): void => {
  const kind = what.replaceAll(/[a-z]+-[0-9a-f]{8,}|[0-9a-f-]{20,}|\d{6,}/g, '…').slice(0, 400);
  const count = findings.get(kind) ?? 0;
  if (count === 0) say(`\n${kind}\n    ${example}`);
  findings.set(kind, count + 1);
};

function learn(known: Known, operation: Operation, text: string): void {
  const add = (name: string, value: unknown): void => {
    if (typeof value !== 'string') return;
    known[name] = [...(known[name] ?? []).slice(1 - KNOWN_AT_ONCE), value];
  };
  const body: Record<string, unknown> = text === '' ? {} : JSON.parse(text);
  const [name, field] = LEARNT[operation.id] ?? ['volumeId', operation.id === 'createVolume' ? 'id' : ''];
  add(name, body[field] ?? (operation.id === 'createVolume' ? body['volumeId'] : undefined));
  add('after', body['next']);
  add('mailId', ([body['mails']].flat().at(-1) as { id?: unknown } | undefined)?.id);
}

function curlOf(target: Target, { method, path, headers, body }: Sent): string {
  const text = body?.toString();
  const url = `http://${target.document}${path}`;
  const shown = toCurl({ method, url, headers, body: text }).slice(0, 1_500);
  const isWhole = body === undefined || Buffer.from(text ?? '').equals(body);
  return isWhole ? shown : `${shown} # the body in base64: ${body.toString('base64').slice(0, 500)}`;
}

/** Sends it again where the server closed an idle connection just then. @throws if there is no reply */
async function answerTo({ fetch }: Target, { path, ...request }: Sent): Promise<Answer> {
  const reply = await fetch(path, request).catch(() => fetch(path, request));
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

await using setting = await startSetting(flags.postgres);
const jobs = setting.targets.flatMap((target) => {
  const document = new Document(target.document, target.prefix);
  const dice = new Dice(flags.seed, target.document);
  const values = new Values(dice, document, target.known);
  return document.operations.map((operation) => {
    const name = `${target.document} ${operation.method} ${operation.path}`;
    /** How many replies had each status. */
    const statuses: Record<string, number> = {};
    const send = async (): Promise<void> => {
      const sent = drawRequest(operation, target, values, dice);
      try {
        const answer = await answerTo(target, sent);
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        for (const finding of findingsIn(document, operation, sent, answer))
          note(
            `${name} → ${answer.status}: ${finding}`,
            `${curlOf(target, sent)}\n    ${answer.text.slice(0, 500)}`,
          );
        if (answer.status < 300 && sent.method === operation.method && sent.credential === 'own')
          learn(target.known, operation, answer.text);
      } catch (error) {
        note(`${name}: ${error}`, curlOf(target, sent));
      }
    };
    return { operation, name, statuses, send };
  });
});
/** Sent three times as often: most others need what they make, and some remove it. */
const creates = jobs.filter(({ operation: { id } }) =>
  /^create(Instance|Volume|Deployment|SshKey)$/.test(id),
);

const database = flags.postgres ? 'PostgreSQL' : 'SQLite';
say(`seed ${flags.seed}, ${flags.requests} requests to each of ${jobs.length} operations, ${database}`);
const order = new Dice(flags.seed, 'order');
for (let round = 0; round < Number(flags.requests); round++) {
  const drawn = [...jobs, ...creates, ...creates].map((job) => ({ job, at: order.chance() }));
  const left = drawn.sort((a, b) => a.at - b.at);
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) await next.job.send();
    }),
  );
}
for (const fault of await setting.faults()) note(fault, fault);
for (const { name, statuses } of jobs) say(`${name}: ${JSON.stringify(statuses)}`);
for (const [kind, count] of findings) say(`\n${count} × ${kind}`);
say(`\n${findings.size} kinds of findings; seed ${flags.seed}`);
process.exitCode = findings.size === 0 ? 0 : 1;
