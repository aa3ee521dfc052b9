/** What a server under measurement tells the bench about itself. */
export interface Usage {
  /** User and system time of the whole process, all its threads. */
  cpuUs: number;
  rssBytes: number;
}

export interface Ready<Info> {
  ready: Info;
}

/** Answers the bench, in the process of a server; ends with the bench. */
export function answerBench<Info>(info: Info): void {
  process.on('message', (question) => {
    if (question === 'collect garbage') globalThis.gc?.();
    process.send?.(usage());
  });
  process.on('disconnect', () => process.exit());
  process.send?.({ ready: info } satisfies Ready<Info>);
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss() };
}
