import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Setting, Subject } from './measure.ts';

type Answer = { ready: true } | { round: Record<string, number> } | { failed: string };

/** A subject in a process of its own: what one leaves in memory is none of the next one's. */
export class SubjectProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** @throws {Error} if it cannot be opened. */
  static async open(id: string, setting: Setting): Promise<SubjectProcess> {
    const child = fork(new URL('./subject-server.ts', import.meta.url), [id, JSON.stringify(setting)], {
      execArgv: ['--expose-gc'],
    });
    const subject = new SubjectProcess(child);
    try {
      await subject.#answer();
      return subject;
    } catch (error) {
      child.kill();
      throw error;
    }
  }

  async round(): Promise<Record<string, number>> {
    this.#child.send('round');
    const answer = await this.#answer();
    if (!('round' in answer)) throw new Error('a subject answers something else than a round');
    return answer.round;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.send('close');
    await exit;
  }

  async #answer(): Promise<Answer> {
    const waiting = new AbortController();
    const { signal } = waiting;
    const ended = once(this.#child, 'exit', { signal }).then(([code]) => {
      throw new Error(`the process of a subject ended with code ${code}`);
    });
    try {
      const [answer] = (await Promise.race([once(this.#child, 'message', { signal }), ended])) as [Answer];
      if ('failed' in answer) throw new Error(answer.failed);
      return answer;
    } finally {
      ended.catch(() => undefined);
      waiting.abort();
    }
  }
}

/** In the process of the subject: a round for each question, until it is told to close or the bench has ended. */
export function answerRounds(subject: Subject): void {
  const answer = (message: Answer) => void process.send?.(message);
  process.on('message', (question) => {
    if (question === 'close') return void subject.close().then(() => process.exit());
    subject.round().then(
      (round) => answer({ round }),
      (error: Error) => answer({ failed: error.stack ?? String(error) }),
    );
  });
  process.on('disconnect', () => process.exit());
  answer({ ready: true });
}
