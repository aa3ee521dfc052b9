import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hedged } from './client.ts';

describe('a hedged read', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const answersIn = (ms: number, answer: string) => () =>
    new Promise<string>((resolve) => setTimeout(() => resolve(answer), ms));
  const fails = (problem: string) => () => Promise.reject(new Error(problem));

  it('goes to the next member when one is silent, and takes the first answer', async () => {
    const third = vi.fn(answersIn(0, 'third'));
    const answer = hedged([answersIn(60_000, 'first'), answersIn(10, 'second'), third], 1_000);
    await vi.advanceTimersByTimeAsync(1_010);
    expect(await answer).toBe('second');
    expect(third).not.toHaveBeenCalled();
  });

  it('goes to one member if that answers in time, and still accepts a slow answer after trying the next', async () => {
    const second = vi.fn(fails('refused'));
    const quick = hedged([answersIn(900, 'first'), second], 1_000);
    await vi.advanceTimersByTimeAsync(900);
    expect([await quick, second.mock.calls.length]).toEqual(['first', 0]);
    const slow = hedged([answersIn(3_000, 'first'), second], 1_000);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await slow).toBe('first');
  });

  it('goes to the next member at once when one fails, and reports every problem', async () => {
    expect(await hedged([fails('a'), async () => 'second'], 1_000)).toBe('second');
    const problem = await hedged([fails('a'), fails('b')], 1_000).catch((error) => error);
    expect(problem.errors.map(String)).toEqual(['Error: a', 'Error: b']);
  });
});
