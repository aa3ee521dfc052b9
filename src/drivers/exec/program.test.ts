import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Offer } from '../../orchestrator/catalog/catalog.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import {
  done,
  GREETING,
  gone,
  greetingFor,
  infoAnswer,
  isRunning,
  LISTEN,
  prepareProgram,
  say,
  startProgram,
  WAIT_FOR_GO,
} from './program.fixture.ts';

it.each([
  ['9 KB', 9_000, 'unknown', 'the driver reported an error for get'],
  ['5 MB', 5_000_000, 'gone', 'neither a result nor an error of at most 10000 characters'],
])(
  'a hostile error of %s is shortened to one line without control characters',
  async (_size, length, answer, said) => {
    await using program = await startProgram(
      `${GREETING}; read -r line; cat "$PLACE/answer"; ${gone('2')}; ${LISTEN}`,
    );
    const error = `\u001b[2J\u001b]0;title\u0007\u009b31m\u202e\u2066evil\r\nforged: OK\n${'A'.repeat(length)}`;
    writeFileSync(join(program.place, 'answer'), `${JSON.stringify({ id: '2', error })}\n`);
    const found = await program.driver.get('a');
    expect(found.answer).toBe(answer);
    const texts = [
      ...program.lines.map(({ message }) => message),
      ...('reason' in found ? [found.reason] : []),
    ];
    expect(texts.join('\n')).toContain(said);
    for (const text of texts) {
      expect(text.length).toBeLessThanOrEqual(600);
      expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
    }
  },
);

describe('a program that answers', () => {
  it('gets several requests at once, and may answer in any order', async () => {
    await using program = await startProgram(
      `${greetingFor({ concurrency: 2 })}; read -r a; read -r b; ${done('3')}; ${gone('2')}; ${LISTEN}`,
    );
    const [presence, step] = await Promise.all([
      program.driver.get('a'),
      program.driver.destroy('b', null, anOrder),
    ]);
    expect(presence).toEqual({ answer: 'gone' });
    expect(step).toEqual({ outcome: 'done', value: null });
  });

  it('gets one request at a time by default: a queued request has not started [exec-serial]', async () => {
    await using program = await startProgram(
      `${GREETING}; while read -r line; do echo "$line" >> "$PLACE/read"; [ -e "$PLACE/go" ] && ${gone('2')}; done`,
    );
    const { driver, clock, place } = program;
    const first = driver.destroy('a', null, anOrder);
    first.catch(() => undefined);
    await expect.poll(() => existsSync(join(place, 'read'))).toBe(true);
    await clock.advance(3_000);
    const second = driver.destroy('b', null, anOrder);
    await clock.advance(4_000);
    await expect(first).rejects.toThrow('did not answer destroy within 7 s');
    await clock.advance(3_000);
    expect(await second).toMatchObject({
      code: 'transient',
      sideEffect: 'none',
      detail: 'the driver is busy: it has not answered destroy for 10 s, and takes 1 at once',
    });
    expect(readFileSync(join(place, 'read'), 'utf8')).toMatch(/^.*"ref":"a".*\n$/);
  });

  it('gets the next request after its answer, even a late one [exec-serial-late]', async () => {
    await using program = await startProgram(
      `${GREETING}; read -r a; ${WAIT_FOR_GO}; ${done('2')}; read -r b; ${gone('3')}; ${LISTEN}`,
    );
    const { driver, clock, place } = program;
    const first = driver.destroy('a', null, anOrder);
    first.catch(() => undefined);
    await clock.advance(7_000);
    await expect(first).rejects.toThrow('did not answer');
    const second = driver.get('b');
    writeFileSync(join(place, 'go'), '');
    expect(await second).toEqual({ answer: 'gone' });
  });

  it('has only the capabilities that it names: unknown names are logged, and omitted ones have defaults', async () => {
    const capabilities = { stop: true, resmue: true, inventory: true, create_visible_within_ms: 0 };
    const counted = { answer: 'counted', free: 3 };
    await using program = prepareProgram(
      `read -r line; ${say(infoAnswer({ capabilities }))}; read -r a; ${say({ id: '2', result: { outcome: 'pending' } })}; read -r b; ${say({ id: '3', result: counted })}; ${LISTEN}`,
    );
    const placements = [{ region: 'd1' }, { region: 'd2' }];
    const offers = ['o1', 'o2'].map((id) => [id, { id, placements } as unknown as Offer] as const);
    const driver = await program.open({ catalog: { regions: new Map(), offers: new Map(offers) } });
    expect(driver.manifest).toMatchObject({
      stop: true,
      resume: false,
      restart: false,
      attachVolume: 'none',
      resizeVolume: 'none',
      keepsNotes: false,
      cloudInitBytes: 0,
    });
    expect(program.said()).toContain('announces capabilities that this version of Berth ignores: resmue');
    expect(await driver.stop('a', null)).toEqual({ outcome: 'pending', cookie: 'begun', pollAfterMs: 1_000 });
    expect(await driver.inventory?.()).toEqual({
      answer: 'counted',
      free: ['o1', 'o2'].flatMap((offerId) =>
        ['d1', 'd2'].map((datacenter) => ({ offerId, datacenter, units: 3 })),
      ),
    });
  });

  it('reports its progress and what limits its free units', async () => {
    const pending = { outcome: 'pending', poll_after_ms: 9, progress: { phase: 'spawning', deadline_at: 7 } };
    const counted = { answer: 'counted', free: [], limited_by: ['quota: cores 40 of 40'] };
    const capabilities = { stop: true, inventory: true, create_visible_within_ms: 0 };
    await using program = prepareProgram(
      `read -r line; ${say(infoAnswer({ capabilities }))}; read -r a; ${say({ id: '2', result: pending })}; read -r b; ${say({ id: '3', result: counted })}; ${LISTEN}`,
    );
    const driver = await program.open();
    expect(await driver.stop('a', null)).toEqual({
      ...{ outcome: 'pending', cookie: 'begun', pollAfterMs: 9 },
      progress: { phase: 'spawning', deadlineAt: 7 },
    });
    expect(await driver.inventory?.()).toEqual({
      answer: 'counted',
      free: [],
      limitedBy: ['quota: cores 40 of 40'],
    });
  });

  it('has a create visible at the end of its time limit at the earliest', async () => {
    await using program = await startProgram(`${GREETING}; ${LISTEN}`, { timeout_s: 4 });
    expect(program.driver.manifest).toMatchObject({ name: 'script', createVisibleWithinMs: 4_000 });
  });

  it('gets only the named environment variables, and their values are in no log', async () => {
    const script = `echo "it is $TOKEN, not $OTHER" >&2; ${GREETING}; ${LISTEN}`;
    const env = { TOKEN: 'a-secret-of-the-provider', OTHER: 'the-key-of-berth' };
    await using program = await startProgram(script, { environment: ['TOKEN'] }, env);
    await expect.poll(() => program.said()).toContain('it is [redacted], not"');
    expect(program.said()).not.toContain('secret-of-the');
    expect(program.said()).not.toContain('key-of-berth');
  });

  it('has named values redacted in its failures, and each of their lines in its log [exec-secrets]', async () => {
    const detail = 'GET https://api.test/?key=a%2Fsecret%2Fof%2Fours refused: a/secret/of/ours';
    const failed = { outcome: 'failed', code: 'invalid', side_effect: 'none', detail };
    const unknown = { answer: 'unknown', reason: detail };
    const value = { ref: 'c', power: 'failed', created_at: 1, detail };
    await using program = await startProgram(
      `echo "it is MIIEvQIBADANBg" >&2; ${GREETING}; read -r a; ${say({ id: '2', result: failed })}; ` +
        `read -r b; ${say({ id: '3', result: unknown })}; ` +
        `read -r c; ${say({ id: '4', result: { answer: 'observed', value } })}; ${LISTEN}`,
      { environment: ['TOKEN', 'KEY'] },
      {
        TOKEN: 'a/secret/of/ours',
        KEY: '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----',
      },
    );
    const clean = 'GET https://api.test/?key=[redacted] refused: [redacted]';
    expect(await program.driver.destroy('a', null, anOrder)).toMatchObject({
      outcome: 'failed',
      detail: clean,
    });
    expect(await program.driver.get('b')).toEqual({ answer: 'unknown', reason: clean });
    expect(await program.driver.get('c')).toMatchObject({ value: { detail: clean } });
    await expect.poll(() => program.said()).toContain('it is [redacted]');
  });

  it('has named values redacted in its failures, with any JSON escapes', async () => {
    const failed = {
      outcome: 'failed',
      code: 'invalid',
      side_effect: 'none',
      detail: 'no: a/secret&of/ours',
    };
    const answer = JSON.stringify({ id: '2', result: failed }).replaceAll('/', '\\/').replace('&', '\\u0026');
    await using program = await startProgram(
      `${GREETING}; read -r a; printf '%s\\n' '${answer}'; ${LISTEN}`,
      { environment: ['TOKEN'] },
      { TOKEN: 'a/secret&of/ours' },
    );
    expect(await program.driver.destroy('a', null, anOrder)).toMatchObject({ detail: 'no: [redacted]' });
  });

  it('has named values redacted, and the line shortened, in the report of an invalid line', async () => {
    const TOKEN = 'a-secret-of-the-provider';
    const answer = JSON.stringify({ id: [TOKEN, 'x'.repeat(1_000)] });
    await using program = await startProgram(
      `${GREETING}; read -r a; echo '${answer}'; ${LISTEN}`,
      { environment: ['TOKEN'] },
      { TOKEN },
    );
    const asked = program.driver.destroy('a', null, anOrder).catch(String);
    await expect.poll(() => program.said()).toContain('its id is not a string');
    const problem = await program.clock.advanceUntilSettled(asked, 1_000);
    expect(problem).toContain('instead it wrote an invalid line');
    for (const text of [problem, program.said()]) expect(text).not.toContain(TOKEN);
    expect(String(problem).length).toBeLessThan(500);
  });

  it.each([
    ['in an unknown field', '{"answer":"gone","more":', '}'],
    ['as a whole', '', ''],
  ])('rejects an answer that is nested too deeply %s [exec-deep-answer]', async (_where, start, end) => {
    const brackets = (bracket: string) => `head -c 20000 /dev/zero | tr '\\0' '${bracket}'`;
    await using program = await startProgram(
      `${GREETING}; read -r a; printf '{"id":"2","result":${start}'; ${brackets('[')}; ${brackets(']')}; ` +
        `echo '${end}}'; ${LISTEN}`,
      { environment: ['TOKEN'] },
      { TOKEN: 'a-secret-of-the-provider' },
    );
    const asked = program.driver.get('a');
    await expect.poll(() => program.said()).toContain('invalid line (it is nested too deeply)');
    expect(await program.clock.advanceUntilSettled(asked, 1_000)).toEqual({
      answer: 'unknown',
      reason: expect.stringContaining('it is nested too deeply'),
    });
  });

  it('gets the cordoned hosts in create and inventory', async () => {
    const counted = (id: string) => say({ id, result: { answer: 'counted', free: 1 } });
    const refused = { outcome: 'failed', code: 'capacity', side_effect: 'none', detail: 'full' };
    await using program = await startProgram(
      `${greetingFor({ capabilities: { create_visible_within_ms: 0, inventory: true } })}; ` +
        [counted('2'), counted('3'), say({ id: '4', result: refused }), say({ id: '5', result: refused })]
          .map((answer) => `read -r line; printf '%s\\n' "$line" >> "$PLACE/asked"; ${answer}; `)
          .join('') +
        LISTEN,
    );
    const { driver } = program;
    await driver.inventory?.([]);
    await driver.inventory?.(['n1']);
    await driver.create(machineSpec({ ref: 'a' }), null);
    await driver.create({ ...machineSpec({ ref: 'a' }), avoidHosts: ['n1', 'n2'] }, null);
    const lines = readFileSync(join(program.place, 'asked'), 'utf8').trim().split('\n');
    const asked = lines.map((line) => JSON.parse(line));
    expect(asked.map(({ avoid_hosts, spec }) => avoid_hosts ?? spec?.avoid_hosts)).toEqual([
      [],
      ['n1'],
      [],
      ['n1', 'n2'],
    ]);
  });

  it('cannot flood the log', async () => {
    await using program = await startProgram(
      `i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done >&2; ${GREETING}; ${LISTEN}`,
    );
    await program.driver.close();
    const written = program.lines.filter(({ message }) => message === 'the driver writes');
    expect(written).toHaveLength(101);
    expect(written.at(-1)?.fields).toMatchObject({ line: 'line 4999', left_out: 4_899 });
  });
});

describe('an answer that violates the protocol', () => {
  const machine = { ref: 'a', power: 'running', created_at: 1 };
  it.each<[string, unknown, string]>([
    ['no answer', { answer: 'perhaps' }, 'answer: Invalid'],
    ['an unknown power', { answer: 'observed', value: { ...machine, power: 'on' } }, 'value.power'],
    [
      'another machine',
      { answer: 'observed', value: { ...machine, ref: 'b' } },
      'answered get of a with the other ref b',
    ],
    ['an invalid time', { answer: 'observed', value: { ...machine, created_at: -1 } }, 'value.created_at'],
    [
      'an endpoint without a port',
      { answer: 'observed', value: { ...machine, endpoint: { public_ip: '1' } } },
      'ssh_port',
    ],
    ['null', null, 'the result'],
  ])('is rejected: %s', async (_what, result, problem) => {
    await using program = await startProgram(
      `${GREETING}; read -r line; ${say({ id: '2', result } as object)}; ${LISTEN}`,
    );
    expect(await program.driver.get('a')).toEqual({
      answer: 'unknown',
      reason: expect.stringContaining(problem),
    });
  });

  it('has its unknown fields ignored', async () => {
    const value = { ...machine, host: 'h1', admin: true };
    await using program = await startProgram(
      `${GREETING}; read -r line; ${say({ id: '2', result: { answer: 'observed', value } })}; ${LISTEN}`,
    );
    expect(await program.driver.get('a')).toEqual({
      answer: 'observed',
      value: { ref: 'a', power: 'running', createdAt: 1, host: 'h1' },
    });
  });

  it('names the answered hosts, and proves nothing if it does so in the wrong form', async () => {
    const hosts = { answered: ['h1'], silent: ['h2'] };
    const answers = [
      { answer: 'gone', hosts },
      { answer: 'unknown', reason: 'h2 is silent', hosts },
      { answer: 'listed', items: [], hosts },
      { answer: 'gone', hosts: ['h1'] },
    ];
    const lines = answers.map((result, at) => `read -r line; ${say({ id: `${at + 2}`, result })}`);
    await using program = await startProgram(`${GREETING}; ${lines.join('; ')}; ${LISTEN}`);
    const { driver } = program;
    expect([await driver.get('a'), await driver.get('a'), await driver.list()]).toEqual(answers.slice(0, 3));
    expect(await driver.get('a')).toMatchObject({ answer: 'unknown' });
  });

  it('leaves the outcome of a step unknown, as does an error of the driver', async () => {
    await using program = await startProgram(
      `${GREETING}; read -r line; ${say({ id: '2', result: { outcome: 'maybe' } })}; read -r line; ${say({ id: '3', error: 'the disk is full' })}; ${LISTEN}`,
    );
    await expect(program.driver.destroy('a', null, anOrder)).rejects.toThrow(
      'gave an invalid answer to destroy',
    );
    await expect(program.driver.destroy('a', null, anOrder)).rejects.toThrow(
      'an error for destroy: the disk is full',
    );
  });
});

describe('a program that cannot be used is refused at the start', () => {
  it.each([
    [
      'speaks another protocol',
      `read -r line; ${say(infoAnswer({ protocol: 7 }))}; ${LISTEN}`,
      /gave an invalid answer to info: protocol: Invalid input: expected 1/,
    ],
    [
      'announces no capabilities',
      `read -r line; ${say(infoAnswer({ capabilities: {} }))}; ${LISTEN}`,
      /gave an invalid answer to info: capabilities.create_visible_within_ms/,
    ],
    ['ends', 'echo "no config" >&2; exit 3', /ended with exit code 3; its last words: "no config"/],
    ['crashes', 'kill -SEGV $$', /was killed by SIGSEGV/],
  ])('one that %s', async (_what, script, sentence) => {
    await using program = prepareProgram(script);
    await expect(program.open()).rejects.toThrow(sentence);
  });

  it('one that never answers, and is killed', async () => {
    await using program = prepareProgram(
      `echo $$ > "$PLACE/pid.new"; mv "$PLACE/pid.new" "$PLACE/pid"; trap '' TERM; ${LISTEN}; sleep 600`,
    );
    const opening = program.open();
    opening.catch(() => undefined);
    await expect.poll(() => existsSync(join(program.place, 'pid'))).toBe(true);
    await expect(program.clock.advanceUntilSettled(opening, 1_000)).rejects.toThrow(
      'did not answer info within 30 s',
    );
    expect(isRunning(Number(readFileSync(join(program.place, 'pid'), 'utf8')))).toBe(false);
  });
});
