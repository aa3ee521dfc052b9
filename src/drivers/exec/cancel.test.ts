import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Call, Step } from '../../orchestrator/model/platform-driver.ts';
import { exec } from './driver.ts';
import {
  GREETING,
  greetingFor,
  infoAnswer,
  isRunning,
  LISTEN,
  type Program,
  say,
  setting,
  startProgram,
} from './program.fixture.ts';
import { sendJson, startWebhook } from './protocol-server.fixture.ts';

const NOTE_LINE = `read -r line; printf '%s\\n' "$line" >> "$PLACE/read"`;
const NOTE_ALL = `while read -r line; do printf '%s\\n' "$line" >> "$PLACE/read"; done`;
/** A child that ignores SIGTERM and writes its process id. */
const CHILD = `sh -c 'trap "" TERM; echo $$ > "$PLACE/pid.new"; mv "$PLACE/pid.new" "$PLACE/pid"; while :; do sleep 1; done' &`;
const stopped = { outcome: 'done', value: { ref: 'a', power: 'stopped', created_at: 1 } };

const readBy = ({ place }: Program): string[] => {
  const file = join(place, 'read');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
};

interface UnderWay {
  controller: AbortController;
  /** The result: a code, an outcome or an error message. */
  settled: () => string | undefined;
}

/** Sends a stop. */
function stopWith({ driver, clock }: Program, deadlineMs = 60_000): UnderWay {
  const controller = new AbortController();
  const call: Call = { deadline: clock.now() + deadlineMs, fence: 1, signal: controller.signal };
  let outcome: string | undefined;
  const settle = (step: Step<unknown>): void => {
    outcome = step.outcome === 'failed' ? `${step.code}, ${step.sideEffect}: ${step.detail}` : step.outcome;
  };
  driver.stop('a', null, call).then(settle, (error: Error) => {
    outcome = `rejected: ${error.message}`;
  });
  return { controller, settled: () => outcome };
}

const CANCELS = { capabilities: { stop: true, create_visible_within_ms: 0, cancel: true } };
const CANCELLED = JSON.stringify({ method: 'cancel', request: '2' });

describe('a program that reads cancel', () => {
  it('is sent a cancel, and the call settles when it has answered the cancelled request', async () => {
    await using program = await startProgram(
      `${greetingFor(CANCELS)}; ${NOTE_LINE}; ${NOTE_LINE}; while [ ! -e "$PLACE/go" ]; do sleep 0.02; done; ${say({ id: '2', result: stopped })}; ${LISTEN}`,
    );
    const { controller, settled } = stopWith(program);
    await expect.poll(() => readBy(program)).toHaveLength(1);
    controller.abort();
    await expect.poll(() => readBy(program)).toEqual([expect.any(String), CANCELLED]);
    await program.clock.advance(4_000);
    expect(settled()).toBeUndefined();
    writeFileSync(join(program.place, 'go'), '');
    await expect.poll(settled).toBe('done');
    expect(program.said()).not.toContain('too late');
  });

  it('is also sent a cancel when a call times out', async () => {
    await using program = await startProgram(`${greetingFor(CANCELS)}; ${NOTE_ALL}`);
    const { settled } = stopWith(program, 2_000);
    await expect.poll(() => readBy(program)).toHaveLength(1);
    await program.clock.advance(1_999);
    expect(readBy(program)).toHaveLength(1);
    await program.clock.advance(1);
    await expect.poll(() => readBy(program)).toEqual([expect.any(String), CANCELLED]);
    expect(settled()).toBeUndefined();
  });

  it('is killed with its children if it does not answer a cancel; only then the call settles, and the program is restarted', async () => {
    await using program = await startProgram(
      `if [ -e "$PLACE/go" ]; then ${greetingFor(CANCELS)}; ${LISTEN}; fi; ${greetingFor(CANCELS)}; touch "$PLACE/go"; read -r line; ${CHILD} ${LISTEN}`,
    );
    const { clock, place } = program;
    const { controller, settled } = stopWith(program);
    await expect.poll(() => existsSync(join(place, 'pid'))).toBe(true);
    const child = Number(readFileSync(join(place, 'pid'), 'utf8'));
    controller.abort();
    await clock.advance(5_000);
    await expect.poll(() => isRunning(program.pid)).toBe(false);
    expect(isRunning(child)).toBe(true);
    expect(settled()).toBeUndefined();
    const whenSettled = expect.poll(async () => {
      if (isRunning(child)) expect(settled()).toBeUndefined();
      await clock.advance(1_000);
      return settled();
    });
    await whenSettled.toContain('rejected: the driver did not answer stop within 5 s after it was cancelled');
    expect(isRunning(child)).toBe(false);
    await expect.poll(() => program.said()).toContain('"again_in_s":1}');
    await clock.advance(1_000);
    await expect.poll(() => program.said().match(/the driver answers/g)).toHaveLength(2);
  });

  it('is sent no cancel for a late read, which changes nothing', async () => {
    await using program = await startProgram(`${greetingFor(CANCELS)}; ${NOTE_ALL}`);
    const looked = program.driver.get('a');
    await expect.poll(() => readBy(program)).toHaveLength(1);
    await program.clock.advance(20_000);
    expect(await looked).toMatchObject({ answer: 'unknown' });
    expect(readBy(program)).toHaveLength(1);
  });
});

describe('a program that reads no cancel', () => {
  it('may answer a request that was aborted by its signal', async () => {
    await using program = await startProgram(
      `${GREETING}; ${NOTE_LINE}; while [ ! -e "$PLACE/go" ]; do sleep 0.02; done; ${say({ id: '2', result: stopped })}; read -r line; ${say({ id: '3', result: { answer: 'gone' } })}; ${LISTEN}`,
    );
    const { controller } = stopWith(program);
    await expect.poll(() => readBy(program)).toHaveLength(1);
    controller.abort();
    const looked = program.driver.get('a');
    writeFileSync(join(program.place, 'go'), '');
    expect(await looked).toEqual({ answer: 'gone' });
    expect(program.lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('is sent no cancel, and the call settles at its signal', async () => {
    await using program = await startProgram(`${GREETING}; ${NOTE_ALL}`);
    const { controller, settled } = stopWith(program);
    await expect.poll(() => readBy(program)).toHaveLength(1);
    controller.abort();
    await program.clock.advance(0);
    expect(settled()).toBe('rejected: the driver did not answer stop before it was cancelled');
    await program.clock.advance(6_000);
    expect(readBy(program)).toHaveLength(1);
    expect(isRunning(program.pid)).toBe(true);
  });
});

describe.each([true, false])('a program whose capability cancel is %s', (cancel) => {
  it('is never sent a request that was aborted in the queue', async () => {
    await using program = await startProgram(
      `${greetingFor(cancel ? CANCELS : {})}; ${NOTE_LINE}; while [ ! -e "$PLACE/go" ]; do sleep 0.02; done; ${say({ id: '2', result: { answer: 'gone' } })}; ${NOTE_LINE}; ${say({ id: '4', result: { answer: 'gone' } })}; ${LISTEN}`,
    );
    const { driver, place } = program;
    const first = driver.get('first');
    const { controller, settled } = stopWith(program);
    controller.abort();
    await expect.poll(settled).toMatch(/^transient, none: the driver is busy/);
    const last = driver.get('last');
    writeFileSync(join(place, 'go'), '');
    expect([await first, await last]).toEqual([{ answer: 'gone' }, { answer: 'gone' }]);
    expect(readBy(program).map((line) => JSON.parse(line).ref)).toEqual(['first', 'last']);
  });

  it('is never sent a request that passed its deadline in the queue while Berth was suspended', async () => {
    await using program = await startProgram(
      `${greetingFor(cancel ? CANCELS : {})}; ${NOTE_LINE}; while [ ! -e "$PLACE/go" ]; do sleep 0.02; done; ${say({ id: '2', result: { answer: 'gone' } })}; ${NOTE_LINE}; ${say({ id: '4', result: { answer: 'gone' } })}; ${LISTEN}`,
    );
    const { driver, place, clock } = program;
    const first = driver.get('first');
    const { settled } = stopWith(program, 3_000);
    clock.step(4_000);
    writeFileSync(join(place, 'go'), '');
    expect(await first).toEqual({ answer: 'gone' });
    expect(await driver.get('last')).toEqual({ answer: 'gone' });
    expect(readBy(program).map((line) => JSON.parse(line).ref)).toEqual(['first', 'last']);
    await clock.advance(0);
    expect(settled()).toMatch(/^transient, none/);
  });

  it('is never sent a request that is aborted or too late', async () => {
    await using program = await startProgram(`${greetingFor(cancel ? CANCELS : {})}; ${NOTE_ALL}`);
    const { driver, clock } = program;
    const fence = 1;
    const late = { deadline: clock.now(), fence, signal: new AbortController().signal };
    const givenUp = { deadline: clock.now() + 5_000, fence, signal: AbortSignal.abort() };
    for (const call of [late, givenUp])
      expect(await driver.stop('a', null, call)).toMatchObject({ code: 'transient', sideEffect: 'none' });
    await program.driver.close();
    expect(readBy(program)).toEqual([]);
  });

  it('holds the call until its children have ended, if it ends during the call', async () => {
    await using program = await startProgram(
      `${greetingFor(cancel ? CANCELS : {})}; read -r line; ${CHILD} while [ ! -e "$PLACE/pid" ]; do sleep 0.02; done; exit 1`,
    );
    const { clock, place } = program;
    const { settled } = stopWith(program);
    await expect.poll(() => isRunning(program.pid)).toBe(false);
    const child = Number(readFileSync(join(place, 'pid'), 'utf8'));
    const whenSettled = expect.poll(async () => {
      if (isRunning(child)) expect(settled()).toBeUndefined();
      await clock.advance(1_000);
      return settled();
    });
    await whenSettled.toContain('rejected: the driver ended with exit code 1');
    expect(isRunning(child)).toBe(false);
  });
});

describe('a driver over HTTP', () => {
  it('sees its connection closed when a request is aborted', async () => {
    const clock = new VirtualClock();
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    await using webhook = await startWebhook((request, response) => {
      if (request.method === 'info') sendJson(response, { ...infoAnswer(), id: request.id });
      else response.once('close', close);
    });
    const options = exec.configSchema.parse({ driver: 'exec', url: webhook.url });
    const driver = await exec.open(options, setting({ clock }));
    const controller = new AbortController();
    const call = { deadline: clock.now() + 5_000, fence: 1, signal: controller.signal };
    const asked = driver.destroy('a', null, anOrder, call);
    await expect.poll(() => webhook.requests.length).toBe(2);
    controller.abort();
    await expect(asked).rejects.toThrow('did not answer destroy before it was cancelled');
    await closed;
    expect(await driver.destroy('a', null, anOrder, call)).toMatchObject({
      code: 'transient',
      sideEffect: 'none',
    });
    expect(webhook.requests.filter(({ body }) => body.method === 'destroy')).toHaveLength(1);
    await driver.close();
  });
});
