"""What the page draws: beliefs and counts over time, kept in the journal as cells of a minute, an hour and a day.

A cell is a cache, as a snapshot is: the journal can give it again. `recorder` writes cells as time goes by and fills
those an older journal lacks; `series` answers a question about any stretch of time from them."""
