/** What the process makes, others may not read: the database and the machines' state hold what tenants sent. */
export const ONLY_OWNER = 0o077;

export interface Stoppable {
  stop(): Promise<void>;
}

/** The first signal drains and exits 0; a second one has its usual effect: it ends the process at once. */
export function stopOnSignal(serving: Stoppable): void {
  const onSignal = (): void => {
    process.off('SIGTERM', onSignal);
    process.off('SIGINT', onSignal);
    serving.stop().catch((error) => {
      process.stderr.write(`berth: the shutdown was not clean: ${error}\n`);
      process.exitCode = 1;
    });
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}
