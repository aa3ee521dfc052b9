/** How often a run did what a report counts. */
export const emptyTally = () => ({
  commands: 0,
  crashes: 0,
  powerCuts: 0,
  pauses: 0,
  partitions: 0,
  clockJumps: 0,
  outages: 0,
});
export type Tally = ReturnType<typeof emptyTally>;
