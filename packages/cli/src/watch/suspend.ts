// Ctrl-Z, or whoever else stops the command: the terminal is the shell's until it is continued.

export interface Suspending {
  /** Leaves the terminal as it was found. */
  give(): void;
  take?(): void;
}

/** Returns how to stop. */
export function whenSuspended({ give, take = () => {} }: Suspending): () => void {
  const suspend = (): void => {
    give();
    process.off("SIGTSTP", suspend);
    // Stops right here, or not at all: where no shell could continue it, the signal does nothing.
    process.kill(process.pid, "SIGTSTP");
    process.on("SIGTSTP", suspend);
    take();
  };
  process.on("SIGTSTP", suspend);
  return () => void process.off("SIGTSTP", suspend);
}
