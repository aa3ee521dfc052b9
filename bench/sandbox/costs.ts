import { join } from 'node:path';

const ROOT = new URL('../..', import.meta.url).pathname;
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK bench';

// Scripts for a process of their own, which runs the built sandbox as a test would.

const COMMON = `
const { createSandbox } = await import('${join(ROOT, 'dist/sandbox.js')}');
const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
const headersOf = ({ apiKey }) => ({ authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' });
const ask = async (sandbox, provider, method, path, body) => {
  const sent = { method, headers: headersOf(provider), ...(body && { body: JSON.stringify(body) }) };
  const answer = await sandbox.fetch(provider.baseUrl + path, sent);
  return { status: answer.status, body: await answer.json() };
};
async function fill(sandbox, most) {
  const made = [];
  for (const provider of sandbox.providers.values())
    for (const offer of (await ask(sandbox, provider, 'GET', '/availability')).body.configurations)
      for (const region of offer.regions)
        while (made.length < most) {
          const body = { configuration_id: offer.id, region, ssh_keys: ['${KEY}'] };
          const { status, body: { id } } = await ask(sandbox, provider, 'POST', '/instances', body);
          if (status !== 201) break;
          made.push({ provider, id });
        }
  return made;
}
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];`;

/** CPU of the first answer and of a further sandbox, and CPU and heap of a poll. */
export const COSTS = `${COMMON}
const ready = async () => {
  const sandbox = await createSandbox({ rate_limits: false });
  await ask(sandbox, sandbox.provider('a'), 'GET', '/availability');
  return sandbox;
};
const begunAt = cpu();
const sandbox = await ready();
const firstMs = cpu() - begunAt;
const further = { created: [], answered: [] };
for (let round = 0; round < 9; round++) {
  const before = cpu();
  const other = await createSandbox({ rate_limits: false });
  further.created.push(cpu() - before);
  await ask(other, other.provider('a'), 'GET', '/availability');
  further.answered.push(cpu() - before);
  await other.close();
}
const [{ provider, id }] = await fill(sandbox, 1);
await sandbox.clock.advance(60_000);
async function poll(count) {
  for (let one = 0; one < count; one++) await ask(sandbox, provider, 'GET', '/instances/' + id);
}
const heap = async () => {
  for (let turn = 0; turn < 4; turn++) { await new Promise((resolve) => setTimeout(resolve, 10)); globalThis.gc(); }
  return process.memoryUsage().heapUsed;
};
await poll(3_000);
const heapBefore = await heap();
const polls = [];
for (let round = 0; round < 20; round++) {
  const before = cpu();
  await poll(300);
  polls.push((cpu() - before) / 300);
}
const heapBytes = ((await heap()) - heapBefore) / 6_000;
console.log(JSON.stringify({ firstMs, createdMs: median(further.created), answeredMs: median(further.answered), pollMs: median(polls), heapBytes }));
await sandbox.close();`;

/** CPU of a day with 100 machines of seven providers, by the way in which they are stuck. */
export const STUCK = `${COMMON}
const destroyAll = async (sandbox, made) => {
  for (const { provider, id } of made) await ask(sandbox, provider, 'DELETE', '/instances/' + id);
};
const ways = {
  none: () => undefined,
  held: async (sandbox, made) => {
    sandbox.transitions.set({ mode: 'manual' });
    await destroyAll(sandbox, made);
  },
  stuck: async (sandbox, made) => {
    await sandbox.faults.arm('destroy-stuck');
    await destroyAll(sandbox, made);
  },
  armed: async (sandbox) => {
    await sandbox.faults.arm('http-500', { route: 'POST /volumes' });
    await sandbox.faults.arm('stopped-reaped', { times: 'sticky' });
  },
};
const found = {};
for (const [way, begin] of Object.entries(ways)) {
  const sandbox = await createSandbox({ providers: ['a', 'b', 'c', 'd', 'e', 'f', 'g'], rate_limits: false });
  const made = await fill(sandbox, 100);
  await sandbox.clock.advance(20 * 60_000);
  await begin(sandbox, made);
  const before = cpu();
  await sandbox.clock.advance(86_400_000);
  found[way] = cpu() - before;
  await sandbox.close();
}
console.log(JSON.stringify(found));`;
