import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Setting, StoreKind, Subject } from './measure.ts';

type Answer = { ready: true } | { round: Record<string, number> } | { failed: string };

export interface SubjectOrder extends Pick<Setting, 'n' | 'isQuick'> {
  /** The id of the measure. */
  id: string;
  store: StoreKind;
}

/** A subject in its own process, so that its memory does not affect the next subject. */
export class SubjectProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /**
   * `postgres`: the server for its databases.
   * @throws {Error} if the subject cannot be opened.
   */
  static async open(order: SubjectOrder, postgres: string | undefined): Promise<SubjectProcess> {
    const child = fork(new URL('./subject-server.ts', import.meta.url), [JSON.stringify(order)], {
      execArgv: ['--expose-gc'],
      env: { ...process.env, ...(postgres !== undefined && { BERTH_TEST_POSTGRES: postgres }) },
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

/** Runs in the subject's process: a round for each request, until a close message or the end of the bench. */
export function answerRounds(subject: Subject, cleanUp: () => Promise<void>): void {
  const end = async (): Promise<never> => {
    await subject.close();
    await cleanUp();
    process.exit();
  };
  const answer = (message: Answer) => void process.send?.(message);
  process.on('message', (question) => {
    if (question === 'close') return void end();
    subject.round().then(
      (round) => answer({ round }),
      (error: Error) => answer({ failed: error.stack ?? String(error) }),
    );
  });
  process.on('disconnect', end);
  answer({ ready: true });
}
