import type { Received } from './traffic.ts';

/** The names of the features of each request of one session: everything that a provider could look at. */
export function featuresOf(session: readonly Received[]): string[][] {
  const sorted = session.toSorted((a, b) => a.at - b.at);
  const [first] = sorted;
  return sorted.map((request, index) => {
    const before = sorted.slice(0, index);
    return [
      ...ofRequest(request),
      ...ofBody(request),
      ...ofTime(request, before, first?.at ?? 0),
      ...ofInstance(request, before),
    ];
  });
}

function templateOf({ method, path }: Received): string {
  return `${method} ${path.replace(/^\/(instances|volumes)\/[^/]+/, '/$1/{id}')}`;
}

function ofRequest(request: Received): string[] {
  const names = request.headers.map(([name]) => name);
  const values = request.headers.filter(
    ([name]) => !['authorization', 'idempotency-key', 'x-request-id'].includes(name),
  );
  return [
    `template ${templateOf(request)}`,
    `query ${request.query.replace(/=[^&]*/g, '')}`,
    `headers ${names.join(',')}`,
    ...names.map((name) => `header ${name}`),
    ...values.map(([name, value]) => `value ${name} ${value}`),
    ...request.headers.map(([name, value]) => `shape ${name} ${shapeOf(value)}`),
    `scheme ${request.headers.find(([name]) => name === 'authorization')?.[1].split(' ')[0] ?? 'none'}`,
  ];
}

function ofBody({ body }: Received): string[] {
  if (body === '') return ['no body'];
  const value = parsed(body);
  if (value === undefined) return ['body that is not JSON'];
  const name = String(value['name'] ?? '');
  const keys = [value['ssh_keys'] ?? []].flat().map(String);
  return [
    `fields ${Object.keys(value).join(',')}`,
    `spaces ${body !== JSON.stringify(value)}`,
    `offer ${value['configuration_id']}`,
    `region ${value['region']}`,
    `image ${value['operating_system_image']}`,
    `keys ${keys.length}`,
    `name ${name.split('-')[0]} ${name.length} ${shapeOf(name)}`,
    ...keys.flatMap((key) => {
      const [type, , comment = ''] = key.split(' ');
      return [`key type ${type}`, `comment words ${key.split(' ').length}`, `comment ${classesOf(comment)}`];
    }),
  ];
}

function ofTime(request: Received, before: readonly Received[], start: number): string[] {
  const last = before.at(-1);
  const template = templateOf(request);
  const lastSame = before.findLast((other) => templateOf(other) === template);
  const [two, one] = before.slice(-2).map(templateOf);
  return [
    `gap ${bucket(request.at - (last?.at ?? start))}`,
    `gap of the same ${template} ${bucket(request.at - (lastSame?.at ?? start))}`,
    `fine gap of the same ${template} ${lastSame === undefined ? 'none' : Math.round((request.at - lastSame.at) / 2_500)}`,
    `grid ${template} ${request.at % 250 === 0} ${request.at % 1_000 === 0}`,
    `after ${one ?? 'nothing'}`,
    `after ${two ?? 'nothing'}, ${one ?? 'nothing'}`,
    `position ${bucket(before.length)}`,
    `since the start ${bucket(request.at - start)}`,
    `in the last 10 s ${before.filter(({ at }) => request.at - at < 10_000).length}`,
    `at the same moment ${before.filter(({ at }) => at === request.at).length}`,
  ];
}

function ofInstance(request: Received, before: readonly Received[]): string[] {
  const [, id] = /^\/instances\/([^/]+)/.exec(request.path) ?? [];
  if (id === undefined) return [];
  const about = before.filter(({ path }) => path.split('/')[2] === id);
  const last = about.at(-1);
  const created = before.findLast(
    ({ method, path, at }) =>
      method === 'POST' && path === '/instances' && at <= (about[0]?.at ?? request.at),
  );
  const action = about.findLast(({ method }) => method !== 'GET');
  return [
    `of an instance ${last?.shown ?? 'new'} ${templateOf(request)}`,
    `of an instance ${last?.shown ?? 'new'} after ${bucket(request.at - (last?.at ?? created?.at ?? 0))} ${request.method}`,
    `age ${bucket(request.at - (created?.at ?? 0))} ${request.method}`,
    `since ${action === undefined ? 'create' : templateOf(action)} ${bucket(request.at - (action?.at ?? created?.at ?? 0))}`,
  ];
}

/** Powers of two, in halves. */
function bucket(value: number): number {
  return value <= 0 ? 0 : Math.round(Math.log2(value) * 2);
}

/** Runs of letters, digits and hex digits, by their length. */
function shapeOf(text: string): string {
  return text
    .replace(/[0-9a-f]{6,}/g, (run) => `<h${run.length}>`)
    .replace(/[A-Za-z]+/g, 'a')
    .replace(/[0-9]+/g, '0');
}

/** Which classes of characters a comment has, and roughly how long it is: its words are whatever users write. */
function classesOf(text: string): string {
  const has = (pattern: RegExp) => (pattern.test(text) ? '1' : '0');
  return `${has(/@/)}${has(/\./)}${has(/[0-9]/)}${has(/[A-Z]/)} ${Math.floor(text.length / 8)}`;
}

function parsed(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
