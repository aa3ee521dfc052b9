import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import {
  done,
  GREETING,
  gone,
  greetingFor,
  infoAnswer,
  isRunning,
  LISTEN,
  say,
  startProgram,
  TELL_PID,
  WAIT_FOR_GO,
  WAIT_FOR_PID,
} from './program.fixture.ts';

describe('a program that ends', () => {
  it('leaves its requests unknown, proves nothing while it is down, and is restarted with increasing delays', async () => {
    const second = `${GREETING}; read -r line; ${gone('2')}; ${LISTEN}`;
    await using program = await startProgram(
      `if [ -e "$PLACE/go" ]; then ${second}; else ${GREETING}; read -r line; echo dying >&2; exit 4; fi`,
    );
    const { driver, clock } = program;
    await expect(driver.create(machineSpec({ ref: 'a' }), null)).rejects.toThrow(
      'the driver ended with exit code 4; its last words: "dying" before it answered create',
    );
    const reason = expect.stringContaining('exit code 4');
    expect(await driver.get('a')).toEqual({ answer: 'unknown', reason });
    expect(await driver.list()).toEqual({ answer: 'unknown', reason });
    expect(await driver.stop('a', null)).toMatchObject({
      outcome: 'failed',
      code: 'transient',
      sideEffect: 'none',
      detail: reason,
    });
    writeFileSync(join(program.place, 'go'), '');
    await expect
      .poll(() => program.said())
      .toContain('Berth starts no work and changes no state until it answers again {"again_in_s":1}');
    await clock.advance(999);
    expect(await driver.get('a')).toMatchObject({ answer: 'unknown' });
    await clock.advance(1);
    await expect.poll(() => driver.get('a')).toEqual({ answer: 'gone' });
  });

  it('is restarted after twice the delay each time', async () => {
    await using program = await startProgram(`${GREETING}; exit 5`);
    for (const seconds of [1, 2, 4, 8]) {
      await expect.poll(() => program.said()).toContain(`"again_in_s":${seconds}}`);
      await program.clock.advance(seconds * 1_000);
    }
  });

  it('is not used when it comes back with other capabilities', async () => {
    const other = say(
      infoAnswer({
        capabilities: {
          ...(infoAnswer() as { result: { capabilities: object } }).result.capabilities,
          stop: false,
        },
      }),
    );
    await using program = await startProgram(
      `if [ -e "$PLACE/go" ]; then read -r line; ${other}; ${LISTEN}; else touch "$PLACE/go"; ${GREETING}; read -r line; fi`,
    );
    await expect(program.driver.destroy('a', null, anOrder)).rejects.toThrow();
    await expect.poll(() => program.said()).toContain('"again_in_s":1}');
    await program.clock.advance(1_000);
    await expect.poll(() => program.said()).toContain('changed its capabilities (stop): restart Berth');
    expect(await program.driver.stop('a', null)).toMatchObject({ code: 'transient', sideEffect: 'none' });
  });

  it('has its process group killed with it', async () => {
    await using program = await startProgram(
      `sh -c 'trap "" TERM; ${TELL_PID}; while :; do sleep 1; done' & ${WAIT_FOR_PID}; ${GREETING}; read -r line; exit 1`,
    );
    const pid = Number(readFileSync(join(program.place, 'pid'), 'utf8'));
    const asked = program.driver.destroy('a', null, anOrder);
    asked.catch(() => undefined);
    await expect.poll(() => isRunning(program.pid)).toBe(false);
    await expect(program.clock.advanceUntilSettled(asked, 10)).rejects.toThrow();
    expect(isRunning(pid)).toBe(true);
    await program.clock.advanceUntilSettled(program.driver.close(), 1_000);
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(program.said()).toContain('killed child processes that the driver left running');
  });

  it('counts as ended even if a process in another session holds its standard output', async () => {
    await using program = await startProgram(
      `setsid sh -c '${TELL_PID}; exec sleep 600' & ${WAIT_FOR_PID}; ${GREETING}; read -r line; exit 1`,
    );
    const pid = Number(readFileSync(join(program.place, 'pid'), 'utf8'));
    try {
      const asked = program.driver.destroy('a', null, anOrder);
      asked.catch(() => undefined);
      await expect.poll(() => isRunning(program.pid)).toBe(false);
      await expect(program.clock.advanceUntilSettled(asked, 10)).rejects.toThrow('exit code 1');
      expect(program.said()).toContain('still holds its standard output; Berth no longer reads it');
      expect(isRunning(pid)).toBe(true);
    } finally {
      process.kill(pid, 'SIGKILL');
    }
  });
});

it('adds no process listener for each program: Node warns above ten', async () => {
  await using _first = await startProgram(`${GREETING}; ${LISTEN}`);
  const listeners = process.listenerCount('exit');
  await using _second = await startProgram(`${GREETING}; ${LISTEN}`);
  expect(process.listenerCount('exit')).toBe(listeners);
});

describe('a program that misbehaves', () => {
  it('is understood despite invalid lines', async () => {
    const noise = `echo 'Hello, world'; echo '{"id":"99","result":{}}'; echo '{"id":2}'`;
    await using program = await startProgram(`${GREETING}; read -r line; ${noise}; ${gone('2')}; ${LISTEN}`);
    expect(await program.driver.get('a')).toEqual({ answer: 'gone' });
    expect(program.said()).toContain(
      'the driver wrote an invalid line (not JSON: log text belongs on standard error): "Hello, world"',
    );
    expect(program.said()).toContain('the driver answered a request that is unknown or already answered');
    expect(program.said()).toContain('its id is 2; expected the id of the request');
  });

  it('is killed when it keeps writing invalid lines', async () => {
    await using program = await startProgram(`${GREETING}; read -r line; while echo babble; do :; done`);
    await expect(program.driver.destroy('a', null, anOrder)).rejects.toThrow(
      'wrote 100 lines that are not answers before it answered destroy',
    );
  });

  it('has a late answer dropped and logged', async () => {
    await using program = await startProgram(
      `${GREETING}; read -r line; ${WAIT_FOR_GO}; ${done('2')}; read -r line; ${gone('3')}; ${LISTEN}`,
    );
    const { driver, clock } = program;
    const asked = driver.destroy('a', null, anOrder);
    asked.catch(() => undefined);
    await clock.advance(7_000);
    await expect(asked).rejects.toThrow('did not answer destroy within 7 s');
    await clock.advance(500);
    writeFileSync(join(program.place, 'go'), '');
    await expect
      .poll(() => program.said())
      .toContain('answered destroy 7.5 s after the request: too late, the answer is dropped');
    expect(await driver.get('a')).toEqual({ answer: 'gone' });
  });

  it('is killed when it hangs, even if it ignores SIGTERM, and is restarted', async () => {
    await using program = await startProgram(
      `echo $$ > "$PLACE/pid"; if [ -e "$PLACE/go" ]; then ${GREETING}; ${LISTEN}; fi; trap '' TERM; ${greetingFor({ concurrency: 3 })}; touch "$PLACE/go"; while :; do sleep 1; done`,
    );
    const { driver, clock } = program;
    const pid = Number(readFileSync(join(program.place, 'pid'), 'utf8'));
    for (let round = 0; round < 3; round++)
      await expect(clock.advanceUntilSettled(driver.destroy('a', null, anOrder), 1_000)).rejects.toThrow(
        'did not answer destroy',
      );
    expect(await driver.get('a')).toMatchObject({
      answer: 'unknown',
      reason: expect.stringContaining('answered nothing for 21 s'),
    });
    await clock.advance(5_000);
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(program.said()).toContain('did not exit after SIGTERM: sending SIGKILL');
    await expect.poll(() => program.said()).toContain('"again_in_s":1}');
    await clock.advance(1_000);
    await expect.poll(() => program.said().match(/the driver answers/g)).toHaveLength(2);
  });

  it('has not started a request that it has not read', async () => {
    await using program = await startProgram(`${greetingFor({ concurrency: 100 })}; exec sleep 600`);
    const { driver, clock } = program;
    const spec = machineSpec({ ref: 'a', note: 'x'.repeat(8_000) });
    const asked = Promise.allSettled(Array.from({ length: 60 }, () => driver.create(spec, null)));
    const outcomes = (await clock.advanceUntilSettled(asked, 1_000)).map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value : 'open',
    );
    expect(outcomes[0]).toBe('open');
    expect(outcomes.at(-1)).toEqual({
      outcome: 'failed',
      code: 'transient',
      sideEffect: 'none',
      detail: 'the driver did not read its requests within 7 s',
    });
    for (let round = 0; round < 3; round++) await clock.advanceUntilSettled(driver.get('a'), 1_000);
    const sleepOn = async (): Promise<string> => {
      await clock.advance(100);
      return program.said();
    };
    await expect.poll(sleepOn).toContain('answered nothing for 21 s and reads nothing');
  });

  it('rejects open requests when it is closed, and ends', async () => {
    await using program = await startProgram(`${GREETING}; ${LISTEN}; touch "$PLACE/ended"`);
    const asked = program.driver.destroy('a', null, anOrder);
    asked.catch(() => undefined);
    await program.driver.close();
    await expect(asked).rejects.toThrow('was closed');
    expect(existsSync(join(program.place, 'ended'))).toBe(true);
    expect(program.clock.pendingTimers).toBe(0);
  });

  it('may answer a request that was open when it was closed', async () => {
    await using program = await startProgram(`${GREETING}; ${LISTEN}; ${done('2')}`);
    program.driver.destroy('a', null, anOrder).catch(() => undefined);
    await program.driver.close();
    expect(program.lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });
});
