"""What every other room uses: files, tables, progress, facts about the machine. Knows nothing of bandits."""
